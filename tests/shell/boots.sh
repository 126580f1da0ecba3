#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What templates ask for at each boot: start and ready.
. "$(dirname "$0")/lib.sh"
require busybox
start_cubefs
T=$MNT/backends/local/templates
gone() { rmdir "$1" 2>/dev/null; }
mkdir -p "$WORK/root/bin" "$WORK/root/etc" "$WORK/root/www"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat echo sleep test httpd wget nc; do ln -s busybox "$WORK/root/bin/$name"; done
echo 'root:x:0:0::/root:/bin/sh' >"$WORK/root/etc/passwd"
echo page >"$WORK/root/www/index.html"
mkdir "$T/t"
put "$T/t/ctl" "import $WORK/root"
check_eq "$(cat "$T/t/start" "$T/t/ready")" ''

# start: at each boot, in the background; ready: before anybody else's first command
put "$T/t/start" 'echo boot >>/etc/boots; sleep 2; echo late >/etc/late; exec sleep 1000'
put "$T/t/ready" 'test -e /etc/late'
sandbox dev template=t
check_eq "$(run dev 'cat /etc/boots /etc/late')" $'boot\nlate'
put "$MNT/dev/ctl" restart
check_eq "$(run dev 'cat /etc/boots')" $'boot\nboot'
put "$MNT/dev/ctl" 'stop 0'
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat /etc/boots')" $'boot\nboot\nboot'
put "$MNT/dev/ctl" pause # a pause is no boot
put "$MNT/dev/ctl" resume
check_eq "$(run dev 'cat /etc/boots')" $'boot\nboot\nboot'
rmdir "$MNT/dev"


# a port, a URL
put "$T/t/start" 'sleep 1; exec httpd -f -p 8080 -h /www'
for ready in 'port 8080' 'http http://127.0.0.1:8080/index.html'; do
	put "$T/t/ready" "$ready"
	check_eq "$(cat "$T/t/ready")" "$ready"
	sandbox dev template=t
	check_eq "$(run dev 'wget -qO - http://127.0.0.1:8080/index.html')" page
	rmdir "$MNT/dev"
done

# a start that fails is a job like any other: seen, and in nobody's way
put "$T/t/start" 'echo broken >&2; exit 7'
: >"$T/t/ready"
sandbox dev template=t
check_eq "$(cat <>"$MNT/dev/jobs/1/exit")" 7
check_eq "$(cat "$MNT/dev/jobs/1/stderr")" broken
check_eq "$(run dev 'echo fine')" fine
rmdir "$MNT/dev"

# what is never ready: create is refused, and leaves nothing; a restart says so, and it runs all the same
put "$MNT/ctl" 'set ready_timeout=1'
put "$T/t/ready" false
expect_error ETIMEDOUT "$MNT/error" 'not ready.*within 1 seconds' put "$MNT/ctl" 'create dev template=t'
check_not test -e "$MNT/dev"
: >"$T/t/ready"
sandbox dev template=t
put "$T/t/ready" false
expect_error ETIMEDOUT "$MNT/dev/error" 'not ready.*within 1 seconds' put "$MNT/dev/ctl" restart
check_eq "$(field "$MNT/dev/status" state)" running
check_eq "$(run dev 'echo fine')" fine
rmdir "$MNT/dev"
for bad in 0 86401 soon -1; do
	expect_error EINVAL "$MNT/error" 'ready_timeout=.*1 to 86400' put "$MNT/ctl" "set ready_timeout=$bad"
done
check_eq "$(field "$MNT/ctl" ready_timeout)" 1
put "$MNT/ctl" 'set ready_timeout=300'

# what ends is no readiness: create is refused, and leaves nothing
put "$T/t/ready" 'exec 2>/dev/null; sleep 1000'
(echo 'create dev template=t' >"$MNT/ctl") 2>/dev/null &
writer=$!
booting() { [ "$(field "$MNT/dev/status" doing 2>/dev/null)" = create ]; }
wait_for 30 booting
kill -INT "$writer" || true
rmdir "$MNT/dev" 2>/dev/null || true
wait "$writer" || true

# refused
for bad in 'port 0' 'port 65536' 'port x' 'http ftp://x' "http http://x/'y"; do
	expect_errno EINVAL bash -c "echo \"$bad\" >'$T/t/ready'"
done
check_match "$(cat "$T/t/ready")" 'sleep 1000'

# kept over the daemon's end
put "$T/t/start" 'echo kept >/etc/kept'
put "$T/t/ready" 'test -e /etc/kept'
cp "$T/t/log" "$WORK/before"
check_match "$(cat "$WORK/before")" "import $WORK/root"
stop_cubefs; start_cubefs
wait_for 20 test -e "$T/t/start"
check_eq "$(cat "$T/t/log")" "$(cat "$WORK/before")"
check_eq "$(cat "$T/t/start" "$T/t/ready")" $'echo kept >/etc/kept\ntest -e /etc/kept'
is_ready() { [ "$(field "$T/t/status" state)" = ready ]; }
wait_for 20 is_ready
sandbox dev template=t
check_eq "$(run dev 'cat /etc/kept')" kept
rmdir "$MNT/dev"
wait_for 20 gone "$T/t"
