#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Templates of checkpoints: `template T` of one, and `import sandbox:NAME[/CHECKPOINT]`.
. "$(dirname "$0")/lib.sh"
start_cubefs
cd "$MNT"
T=backends/local/templates
sandbox dev env.WHO=dev
run dev 'echo one >/etc/state; echo one >state; mkdir d; ln -s x d/l; echo x >/srv/gone; hostname; cat /etc/machine-id' >"$WORK/dev"
mkdir dev/checkpoints/a
run dev 'echo two >/etc/state; echo two >state'

# ---- of a checkpoint ----
put dev/checkpoints/a/ctl 'template ready:v1'
check_eq "$(field $T/ready:v1/status state)" ready
check_eq "$(field $T/ready:v1/info source)" sandbox:dev/a
check_eq "$(cat dev/files/etc/state)" two
# in the sandbox's own ctl, in info, in the usage
check_match "$(cat dev/checkpoints/a/ctl)" 'template T'
sandbox one template=ready:v1
check_eq "$(run one 'cat /etc/state state; readlink d/l; hostname; cat /etc/hostname')" $'one\none\nx\none\none'
check_not grep -qxF "$(run one 'cat /etc/machine-id')" "$WORK/dev"
check_eq "$(field one/status template)" ready:v1
check_eq "$(cat one/changes)" ''
run one 'echo mine >/etc/state; rm state; echo n >new; rm /srv/gone'
check_eq "$(LC_ALL=C sort one/changes)" $'A /workspace/new\nD /srv/gone\nD /workspace/state\nM /etc/state'
sandbox two template=ready:v1
check_eq "$(run two 'cat /etc/state state; ls; cat /srv/gone')" $'one\none\nd\nstate\nx'
put one/ctl reset # the template's files; /workspace is kept
check_eq "$(run one 'cat /etc/state; ls; cat /srv/gone')" $'one\nd\nnew\nx'
put ctl 'fork one three'
check_eq "$(run three 'cat /etc/state new; ls')" $'one\nn\nd\nnew'
mkdir one/checkpoints/own
check_eq "$(LC_ALL=C sort one/checkpoints/own/changes)" $'A /workspace/new\nD /workspace/state'
check_eq "$(cat one/checkpoints/own/files/workspace/new one/checkpoints/own/files/workspace/d/../new)" $'n\nn'
# a template of what was made of it
put one/checkpoints/own/ctl 'template next'
expect_error EBUSY error 'is used by' rmdir $T/ready:v1
rm -rf one two three

sandbox four template=next
check_eq "$(run four 'cat /etc/state new; ls')" $'one\nn\nd\nnew'
check_eq "$(cat four/changes)" ''

# ---- bad input ----
expect_error EEXIST dev/error "a template 'next' already" put dev/checkpoints/a/ctl 'template next'
expect_error EINVAL dev/error 'no name for a template' put dev/checkpoints/a/ctl 'template a/b'
expect_error EINVAL dev/error 'no name for a template' put dev/checkpoints/a/ctl "template ''"
expect_error EINVAL dev/error 'no name for a template' put dev/checkpoints/a/ctl 'template ../x'
expect_error EINVAL dev/error 'no name for a template' put dev/checkpoints/a/ctl "template 'two words'"
expect_error EINVAL dev/error 'usage: template' put dev/checkpoints/a/ctl template
expect_error EINVAL dev/error 'usage: template' put dev/checkpoints/a/ctl 'template x y'
expect_error EEXIST dev/error "a template 'host' already" put dev/checkpoints/a/ctl 'template host'
check_eq "$(LC_ALL=C ls $T)" $'host\nnext\nready:v1'

# ---- import ----
mkdir $T/live $T/past
memory=
[ "$TEST_UID" -ne 0 ] || memory=' memory=300M'
put $T/live/ctl "import sandbox:dev$memory"
put $T/past/ctl 'import sandbox:dev/a'
put $T/past/ctl 'import sandbox:dev/a' # nothing
check_eq "$(ls dev/checkpoints)" a
sandbox l template=live
sandbox t template=past
check_eq "$(run l 'cat /etc/state state'; run t 'cat /etc/state state')" $'two\ntwo\none\none'
check_eq "$(field $T/live/info source)" sandbox:dev
[ -z "$memory" ] || check_match "$(cat l/status)" 314572800
expect_error EBUSY error 'in use' put $T/past/ctl 'import sandbox:dev'
check_eq "$(run t 'cat /etc/state')" one
rm -rf l t
mkdir $T/bad
expect_error ENOENT error "no sandbox 'nobody'" put $T/bad/ctl 'import sandbox:nobody'
expect_error ENOENT error "no checkpoint 'b'" put $T/bad/ctl 'import sandbox:dev/b'
expect_error ENOENT error "no sandbox ''" put $T/bad/ctl 'import sandbox:'
expect_error EINVAL error 'only cpus, memory and disk' put $T/bad/ctl 'import sandbox:dev os=linux'
expect_error EINVAL error 'is no key' put $T/bad/ctl 'import sandbox:dev colour=red'
check_eq "$(field $T/bad/status state)" none
rmdir $T/bad

# ---- what its files' template does at boot ----
mkdir $T/boots
put $T/boots/ctl 'import sandbox:dev/a'
echo 'echo booted >/etc/booted' >$T/boots/start
sandbox b template=boots
BOOTED='until [ -e /etc/booted ]; do sleep 0.02; done; cat /etc/booted' # a start is not waited for
check_eq "$(run b "$BOOTED; rm /etc/booted")" booted
mkdir b/checkpoints/c
put b/checkpoints/c/ctl 'template boots2'
check_eq "$(cat $T/boots2/start)" 'echo booted >/etc/booted'
sandbox b2 template=boots2
check_eq "$(run b2 "$BOOTED")" booted
rm -rf b b2
wait_for 20 eval 'rmdir $T/boots2 2>/dev/null'

# ---- it outlives the sandbox, and the daemon ----
rmdir dev/checkpoints/a
rm -rf dev
for end in stop_cubefs kill_cubefs; do
	cd /
	"$end"
	start_cubefs
	cd "$MNT"
	check_eq "$(field $T/next/status state)" ready
	check_eq "$(run four 'cat /etc/state new')" $'one\nn'
	sandbox "five-$end" template=live
	check_eq "$(run "five-$end" 'cat /etc/state state')" $'two\ntwo'
	rm -rf "five-$end"
done

# ---- a daemon that is killed while it makes one: ready, or there is none ----
mkdir four/checkpoints/k
for delay in 0.002 0.01 0.03 0.08; do
	(put four/checkpoints/k/ctl 'template cut' 2>/dev/null || true) &
	sleep "$delay"
	cd /
	kill_cubefs
	wait $!
	start_cubefs
	cd "$MNT"
	wait_for 20 grep -q '^reachable yes' backends/local/status
	if [ -e $T/cut ]; then
		check_eq "$(field $T/cut/status state)" ready
		sandbox made template=cut
		check_eq "$(run made 'cat new')" n
		rm -rf made
		wait_for 20 eval 'rmdir $T/cut 2>/dev/null'
	fi
	put four/checkpoints/k/ctl 'template cut' # the name is free
	rmdir $T/cut
done

# ---- nothing is left ----
rm -rf four
for name in next ready:v1 live boots past; do
	wait_for 20 eval "rmdir $T/$name 2>/dev/null"
done
wait_for 20 eval '[ "$(ls $T)" = host ]'
wait_for 60 eval '[ -z "$(find "$STATE/backends/local" -maxdepth 3 -name "*template-*" 2>/dev/null)" ]'
cd /
stop_cubefs

# ---- a daemon that is killed while the files are copied, or who asked is interrupted: there is none ----
# cp(1) of our own: slow while there is a file that says so.
mkdir "$WORK/bin"
cat >"$WORK/bin/cp" <<END
#!/bin/sh
: >>'$WORK/began'
[ ! -e '$WORK/slow' ] || exec sleep 1000
exec /bin/cp "\$@"
END
chmod +x "$WORK/bin/cp"
printf '[backend local]\nkind = local\nstore = copies\n' >"$WORK/conf"
STATE=$WORK/copies
PATH=$WORK/bin:$PATH start_cubefs --config "$WORK/conf"
cd "$MNT"
sandbox dev
mkdir dev/checkpoints/a
rm -f "$WORK/began"
: >"$WORK/slow"
(put dev/checkpoints/a/ctl 'template cut' 2>/dev/null || true) &
wait_for 20 test -e "$WORK/began"
check_match "$(field $T/cut/status state)" importing
cd /
kill_cubefs
wait $!
rm "$WORK/slow"
PATH=$WORK/bin:$PATH start_cubefs --config "$WORK/conf"
cd "$MNT"
wait_for 20 grep -q '^reachable yes' backends/local/status
check_eq "$(ls $T)" host
put dev/checkpoints/a/ctl 'template cut'
check_match "$(cat $T/cut/log)" 'import sandbox:dev/a'
rmdir $T/cut
rm -rf dev
cd /
