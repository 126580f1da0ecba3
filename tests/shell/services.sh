#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Services of a template: what its sandboxes expose from the start, and under which names.
. "$(dirname "$0")/lib.sh"
require busybox curl
start_cubefs
T=$MNT/backends/local/templates/t
if grep -q '^missing ports ' "$MNT/backends/local/status"; then
	skip 'no ports here'
fi
gone() { rmdir "$1" 2>/dev/null; }
exposed() { # SANDBOX: its ports with their names
	local p
	for p in "$MNT/$1/ports"/*/; do
		[ ! -d "$p" ] || echo "$(basename "$p") $(field "$p/status" name)"
	done
}
mkdir -p "$WORK/root/bin" "$WORK/root/etc" "$WORK/root/www"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat echo sleep httpd; do ln -s busybox "$WORK/root/bin/$name"; done
echo 'root:x:0:0::/root:/bin/sh' >"$WORK/root/etc/passwd"
echo page >"$WORK/root/www/index.html"
mkdir "$T"
put "$T/ctl" "import $WORK/root"
check_eq "$(cat "$T/services")" ''
check_eq "$(stat -c %a "$T/services")" "$(stat -c %a "$T/aliases")"

# refused: the whole write, with the line's number; what was there stays
put "$T/services" 'web 8080'
bad() { # REGEX TEXT
	expect_error EINVAL "$MNT/error" "$1" bash -c "printf %s\\\\n $(printf %q "$2") >'$T/services'"
	check_eq "$(cat "$T/services")" 'web 8080'
}
bad 'line 1: .*NAME PORT' web
bad 'line 1: .*NAME PORT' ' 80'
bad 'line 1: .*NAME PORT' 'a/b 80'
bad 'line 2: .*NAME PORT' $'ok 80\n-x 81'
bad 'line 1: ' 'web 0'
bad 'line 1: ' 'web 65536'
bad 'line 1: ' 'web http'
bad 'line 1: ' 'web 080'
bad 'line 1: ' 'web 80 81'
bad 'line 2: .*above' $'web 80\nweb 81'
bad 'line 3: .*above' $'web 80\n\nother 80'
bad 'more than 64' "$(for i in {1..65}; do echo "s$i $i"; done)"

# each sandbox of it, and no other; names are there before anything listens
put "$T/start" 'exec httpd -f -p 8080 -h /www'
printf 'web 8080\ndb unix:%%2Frun%%2Fdb' >"$T/services"
check_eq "$(cat "$T/services")" $'web 8080\ndb unix:%2Frun%2Fdb'
sandbox one template=t
sandbox two template=t
sandbox other
for name in one two; do
	check_eq "$(exposed $name)" $'8080 web\nunix:%2Frun%2Fdb db'
	check_eq "$(curl -fsS "$(timeout 60 cat <>"$MNT/$name/ports/8080/url")")" page
done
check_eq "$(exposed other)" ''
check [ "$(field "$MNT/one/ports/8080/status" port)" != "$(field "$MNT/two/ports/8080/status" port)" ]
check grep -q '"sandbox":"one","event":"port.opened","detail":"8080 ' "$MNT/events"

# together with the create line's own
sandbox both template=t ports=9000,8080
check_eq "$(exposed both)" $'8080 web\n9000 -\nunix:%2Frun%2Fdb db'

# a sandbox has them for itself: closed or renamed, they stay so over a restart and the daemon's end
rmdir "$MNT/one/ports/unix:%2Frun%2Fdb"
put "$MNT/one/ports/8080/ctl" 'name mine'
put "$MNT/one/ctl" restart
check_eq "$(exposed one)" '8080 mine'
: >"$T/services"
stop_cubefs; start_cubefs
put "$MNT/one/ctl" 'wait running 60'
put "$MNT/two/ctl" 'wait running 60'
check_eq "$(exposed one)" '8080 mine'
check_eq "$(exposed two)" $'8080 web\nunix:%2Frun%2Fdb db'
check_eq "$(curl -fsS "$(timeout 60 cat <>"$MNT/two/ports/8080/url")")" page
is_ready() { [ "$(field "$T/status" state)" = ready ]; }
wait_for 20 is_ready
check_eq "$(cat "$T/services")" ''
sandbox late template=t
check_eq "$(exposed late)" ''
put "$T/services" 'web 8080'
kill_cubefs; start_cubefs
wait_for 20 is_ready
check_eq "$(cat "$T/services")" 'web 8080'
rmdir "$MNT"/{one,two,other,both,late}
wait_for 20 gone "$T"
