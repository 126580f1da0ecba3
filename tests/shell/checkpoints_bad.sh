#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints that cannot be: wrong names, what is used at this moment, a store that is damaged. Each is refused with a
# sentence, leaves nothing half made, and the others go on.
. "$(dirname "$0")/lib.sh"

# cp(1) of our own: it waits while there is a file that says so.
mkdir "$WORK/bin"
cat >"$WORK/bin/cp" <<END
#!/bin/sh
: >'$WORK/began'
while [ -e '$WORK/slow' ]; do sleep 0.05; done
exec /bin/cp "\$@"
END
chmod +x "$WORK/bin/cp"
printf '[backend local]\nkind = local\nstore = copies\n' >"$WORK/conf"

start() {
	PATH=$WORK/bin:$PATH start_cubefs --config "$WORK/conf"
	wait_for 60 grep -q '^reachable yes' "$MNT/backends/local/status"
	cd "$MNT" || return
}

slowly() { # COMMAND...: behind; returns when it has begun to copy
	rm -f "$WORK/began"
	: >"$WORK/slow"
	"$@" &
	PID=$!
	wait_for 60 test -e "$WORK/began"
}

on_with_it() {
	rm "$WORK/slow"
	check wait "$PID"
}

start
sandbox dev
run dev 'echo one >/etc/state; echo one >state'
mkdir dev/checkpoints/a dev/checkpoints/b
run dev 'echo two >/etc/state; echo two >state'

# ---- names ----
mkdir 'dev/checkpoints/two words'
mv 'dev/checkpoints/two words' dev/checkpoints/$'tab\t'
rmdir dev/checkpoints/$'tab\t'
for name in '' . .. ../x a/b "$(printf 'n%.0s' {1..201})"; do
	expect_error EINVAL dev/error 'no name for a checkpoint' put dev/ctl "checkpoint '$name'"
	expect_errno ENOENT put dev/ctl "restore '$name'"
	expect_errno ENOENT put dev/ctl "fork x from='$name'"
done
expect_errno EEXIST mkdir dev/checkpoints/a
expect_error EEXIST dev/error "has a checkpoint 'a' already" put dev/ctl 'checkpoint a'
expect_errno ENOENT rmdir dev/checkpoints/none
expect_errno ENOENT put dev/ctl 'mv checkpoints/none checkpoints/x'
check_eq "$(ls dev/checkpoints)" $'a\nb'

# ---- what is used stays, and its name too ----
slowly put dev/ctl 'fork f1'
expect_error EBUSY error 'checkpoint is under way' put ctl 'fork dev f1'
on_with_it
expect_error EEXIST error "'f1' is there already" put ctl 'fork dev f1'
check_eq "$(run f1 'cat /etc/state state')" $'two\ntwo'
slowly put dev/ctl 'fork f2 from=a'
expect_error EBUSY dev/error "checkpoint 'a'" rmdir dev/checkpoints/a
on_with_it
check_eq "$(run f2 'cat /etc/state state')" $'one\none'
# what runs goes on until the files are there, and ends then
mkdir dev/jobs/long
put dev/jobs/long/cmd 'echo up; while :; do sleep 0.05; done'
wait_for 20 grep -q up dev/jobs/long/output
slowly put dev/ctl 'restore a'
expect_error EBUSY dev/error "checkpoint 'a'" rmdir dev/checkpoints/a
expect_error EBUSY dev/error 'restore is under way' put dev/ctl 'checkpoint c'
on_with_it
check_eq "$(field dev/jobs/long/status ended)" killed
check_eq "$(run dev 'cat /etc/state state')" $'one\none'
rmdir f1 f2 dev/checkpoints/a

# ---- damage ----
damage() { # COMMAND WORD...: of one checkpoint `bad`, with its id and its set; afterwards it alone is of no use. (What
# they lay aside the next start sweeps.)
	local id
	mkdir "$MNT/dev/checkpoints/bad"
	id=$(ls -t "$STATE/backends/local/checkpoints" | head -n 1)
	id=${id%.json}
	cd /
	stop_cubefs
	(cd "$STATE/backends/local" && ID=$id eval "$*")
	start
	check_eq "$(cat dev/checkpoints/b/files/etc/state)" one
	put dev/ctl 'restore b'
	check_eq "$(run dev 'cat /etc/state state')" $'one\none'
	expect_error EIO dev/error 'is damaged: it can only be deleted' put dev/ctl 'restore bad'
	expect_error EIO dev/error 'is damaged' put dev/ctl 'fork x from=bad'
	check_not test -e x
	check_not ls dev/checkpoints/bad/files 2>/dev/null
	rmdir dev/checkpoints/bad
	wait_for 20 eval '[ -z "$(find "$STATE/backends/local" -maxdepth 2 -name "*$id*")" ]'
	mkdir dev/checkpoints/bad # its name is free
	rmdir dev/checkpoints/bad
}
# shellcheck disable=SC2016 # expanded there
{
	damage 'mv layers/$ID layers/.$ID.gone'
	damage 'echo garbage >checkpoints/$ID.json'
	damage ': >checkpoints/$ID.json'
	damage 'truncate -s 20 checkpoints/$ID.json'
	damage 'mv layers/$ID/root layers/$ID/.root.new'
}
cd /
stop_cubefs
