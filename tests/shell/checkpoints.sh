#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other states of a sandbox's files: reset, checkpoints, restore, and what differs.
[ -n "${WORK-}" ] || . "$(dirname "$0")/lib.sh"
BACKEND=${BACKEND-local}
start_cubefs
cd "$MNT"
sandbox dev

# ---- changes ----
check_eq "$(cat dev/changes)" ''
mkdir dev/files/srv/d
echo x >dev/files/srv/d/x
echo n >dev/files/srv/$'new\nline'
echo b >'dev/files/srv/back\slash'
echo w >dev/workspace/w
check_eq "$(LC_ALL=C sort dev/changes)" 'A /srv/back\\slash
A /srv/d
A /srv/d/x
A /srv/new\nline
A /workspace/w'
check_eq "$(stat -c %s dev/changes)" "$(wc -c <dev/changes)" size
check_eq "$(stat -c %A dev/changes)" -r--r--r--
expect_errno EACCES eval 'echo x >dev/changes'
# a whole of many pieces, from two places at once
run dev 'mkdir /srv/many; cd /srv/many; for i in $(seq 3000); do : >a-name-that-is-long-enough-to-fill-several-pieces-$i; done'
cat dev/changes >"$WORK/one" &
cat dev/changes >"$WORK/two"
wait $!
check cmp "$WORK/one" "$WORK/two"
check_eq "$(grep -c '^A /srv/many/a-name' "$WORK/one")" 3000
check_eq "$(stat -c %s dev/changes)" "$(wc -c <"$WORK/one")"

# ---- reset ----
mkdir dev/jobs/long
put dev/jobs/long/cmd 'echo up; sleep 1000'
wait_for 10 grep -q up dev/jobs/long/output
run dev 'cd /srv; X=1; echo mine >/srv/mine'
exec 3<dev/files/srv/mine
cd dev/files/srv
expect_errno EINVAL eval "echo 'reset now' >'$MNT/dev/ctl'"
put "$MNT/dev/ctl" reset
cd "$MNT"
if cat <&3 >"$WORK/read" 2>"$WORK/why"; then fail 'a file of before the reset can be read'; fi
check_match "$(cat "$WORK/why")" 'Stale file handle'
exec 3<&-
check_not test -e dev/files/srv/mine
check_not test -e dev/files/srv/many
check_eq "$(cat dev/workspace/w)" w
check_eq "$(field dev/status generation)" 1
check_eq "$(field dev/status state)" running
check_eq "$(field dev/jobs/long/status ended)" killed
check_eq "$(cat dev/jobs/long/output)" up
check_eq "$(run dev 'pwd; echo "<$X>"; ls /srv')" $'/workspace\n<>'
check_eq "$(tail -n 20 events | grep -c '"restored"')" 1
check_eq "$(cat dev/changes)" 'A /workspace/w'
# what is stopped stays so
put dev/ctl stop
echo again >dev/files/srv/again
put dev/ctl reset
check_eq "$(field dev/status state)" stopped
check_eq "$(field dev/status generation)" 2
check_not test -e dev/files/srv/again
put dev/ctl start
# paused: it runs again
echo again >dev/files/srv/again
put dev/ctl pause
put dev/ctl 'reset &'
wait_for 60 grep -q '^done reset ok' dev/status
check_eq "$(run dev 'ls /srv')" ''
# a daemon that was killed knows
cd /
kill_cubefs
start_cubefs
cd "$MNT"
check_eq "$(field dev/status generation)" 3
echo more >dev/files/srv/more
check_eq "$(cat dev/changes)" $'A /srv/more\nA /workspace/w'
put dev/ctl reset
check_eq "$(run dev 'ls /srv')" ''
rmdir dev

# ---- checkpoints ----
sandbox dev
check_eq "$(ls dev/checkpoints)" ''
run dev 'echo one >/etc/state; echo one >state; mkdir -p /srv/d; ln -s x /srv/d/l'
mkdir dev/checkpoints/a # complete when mkdir returns
check_eq "$(ls dev/checkpoints)" a
check_eq "$(ls dev/checkpoints/a)" $'changes\nctl\nfiles\ninfo'
theirs=() # what an engine has in the root of a container and in no checkpoint
[ "$BACKEND" = local ] || theirs=(-x hosts -x hostname -x resolv.conf -x mtab)
check diff -r --no-dereference "${theirs[@]}" dev/checkpoints/a/files/etc dev/files/etc
check_eq "$(cat dev/checkpoints/a/files/workspace/state)" one
check_eq "$(LC_ALL=C sort dev/checkpoints/a/changes)" $'A /etc/state\nA /srv/d\nA /srv/d/l\nA /workspace/state'
check_eq "$(field dev/checkpoints/a/info parent)" -
check_eq "$(field dev/checkpoints/a/info memory)" no
check_eq "$(field dev/checkpoints/a/info backend)" "$BACKEND"
run dev 'echo two >/etc/state; echo two >state; rm -r /srv/d'
put dev/ctl "checkpoint 'two words' memory=no"
run dev 'echo three >/etc/state'
weird=$'x\ny\\"\xff'
mkdir "dev/checkpoints/$weird"
check_eq "$(ls dev/checkpoints | wc -l)" 4 # one name has a newline in it
check_eq "$(field 'dev/checkpoints/two words/info' parent)" a
check_eq "$(LC_ALL=C sort 'dev/checkpoints/two words/changes')" $'D /srv/d\nM /etc/state\nM /workspace/state'
check_eq "$(cat dev/checkpoints/{a,'two words',"$weird"}/files/etc/state)" $'one\ntwo\nthree'
check_eq "$(tail -n 20 events | grep -c '"checkpoint"')" 3
# read only, whoever asks
expect_errno EROFS eval 'echo x >dev/checkpoints/a/files/etc/state'
expect_errno EROFS touch dev/checkpoints/a/files/etc/new
expect_errno EROFS rm dev/checkpoints/a/files/etc/state
expect_errno EROFS eval 'echo x >dev/checkpoints/a/files/workspace/state'
# inode numbers are of one file
check_eq "$(find dev/files/etc dev/checkpoints/*/files/etc -type f -links 1 -printf '%i\n' | sort | uniq -d)" ''
one=$(stat -c %i dev/checkpoints/a/files/etc/state)

# names
expect_error EEXIST dev/error "has a checkpoint 'a' already" put dev/ctl 'checkpoint a'
expect_errno EEXIST mkdir dev/checkpoints/a
for name in last clone; do
	expect_errno EINVAL mkdir "dev/checkpoints/$name"
	expect_errno EINVAL put dev/ctl "checkpoint $name"
done
expect_error EINVAL dev/error 'no name for a checkpoint' put dev/ctl "checkpoint ''"
expect_error EINVAL dev/error 'no name for a checkpoint' put dev/ctl 'checkpoint a/b'
long=$(printf 'n%.0s' {1..200})
mkdir "dev/checkpoints/$long"
rmdir "dev/checkpoints/$long"
expect_errno EINVAL mkdir "dev/checkpoints/n$long"
expect_error EINVAL dev/error 'usage: checkpoint' put dev/ctl checkpoint
[ "$BACKEND" != local ] || command -v criu >/dev/null || check_match "$(cat backends/local/status)" 'checkpoint_memory.*criu is not installed'
expect_error EOPNOTSUPP dev/error 'cannot keep memory in checkpoints.*: [a-zA-Z]' put dev/ctl 'checkpoint m memory=yes'
expect_error EINVAL dev/error 'memory=maybe' put dev/ctl 'checkpoint m memory=maybe'
expect_error EINVAL dev/error 'colour=red' put dev/ctl 'checkpoint m colour=red'
expect_errno EPERM rm dev/checkpoints/a/info
expect_errno EEXIST put dev/ctl "mv checkpoints/a 'checkpoints/two words'"
check_eq "$(ls dev/checkpoints | wc -l)" 4

# mv, labels
mv dev/checkpoints/a dev/checkpoints/first
check_eq "$(cat dev/checkpoints/first/files/etc/state)" one
check_eq "$(stat -c %i dev/checkpoints/first/files/etc/state)" "$one"
check_eq "$(field 'dev/checkpoints/two words/info' parent)" first
put dev/checkpoints/first/ctl 'set label.who=me'
check_eq "$(field dev/checkpoints/first/info label.who)" me
expect_error EINVAL dev/error "no key 'who'" put dev/checkpoints/first/ctl 'set who=me'

# ---- restore ----
mkdir dev/jobs/long2
put dev/jobs/long2/cmd 'sleep 1000'
exec 3<dev/files/etc/state
put dev/ctl 'restore first'
check_not cat <&3 2>/dev/null
exec 3<&-
check_eq "$(cat dev/files/etc/state dev/workspace/state)" $'one\none'
check_eq "$(run dev 'cat /etc/state state; readlink /srv/d/l')" $'one\none\nx'
check_eq "$(field dev/jobs/long2/status ended)" killed
check_eq "$(field dev/status generation)" 1
check_eq "$(cat dev/changes)" ''
put 'dev/checkpoints/two words/ctl' restore
check_eq "$(run dev 'cat /etc/state')" two
expect_error ENOENT dev/error "has no checkpoint 'nothing'" put dev/ctl 'restore nothing'
expect_error ENOENT dev/error "no sandbox 'nobody'" put dev/ctl 'restore nobody/first'
expect_error EINVAL dev/error 'usage: restore' put dev/ctl restore
# another one's
sandbox other
put other/ctl 'restore dev/first'
check_eq "$(run other 'cat /etc/state state; hostname; cat /etc/hostname')" $'one\none\nother\nother'
mkdir other/checkpoints/of
check_eq "$(field other/checkpoints/of/info parent)" dev/first
# one of three goes; the others stay whole
rmdir dev/checkpoints/'two words'
check_not test -e 'dev/checkpoints/two words'
check_eq "$(field "dev/checkpoints/$weird/info" parent)" first
check_eq "$(cat "dev/checkpoints/$weird/files/etc/state")" three
check_eq "$(cat dev/checkpoints/first/files/etc/state)" one
# stopped and paused
put dev/ctl stop
mkdir dev/checkpoints/still
put dev/ctl 'restore first'
check_eq "$(field dev/status state)" stopped
check_eq "$(cat dev/files/etc/state)" one
put dev/ctl start
put dev/ctl pause
mkdir dev/checkpoints/frozen
check_eq "$(field dev/status state)" paused
put dev/ctl resume

# ---- fork ----
put dev/ctl 'set label.team=red'
printf 'A=1\n' >dev/env
put dev/ctl 'restore first'
put dev/ctl 'fork one two'
for name in one two; do
	check_eq "$(run $name 'cat /etc/state state; hostname; echo $A')" $'one\none\n'$name$'\n1'
	check_eq "$(field $name/status parent)" dev
	check_eq "$(field $name/status label.team)" red
	run $name "echo $name >/etc/state"
done
check_eq "$(run dev 'cat /etc/state')" one
check_eq "$(ls one/checkpoints)" ''
put ctl "fork dev three from=first label.team=blue env.A=2 memory=no"
check_eq "$(run three 'cat /etc/state; echo $A')" $'one\n2'
check_eq "$(field three/status parent)" dev/first
check_eq "$(field three/status label.team)" blue
put dev/checkpoints/first/ctl 'fork four'
put ctl 'create five from=dev/first'
put ctl 'create six from=two'
check_eq "$(cat four/files/etc/state five/files/etc/state six/files/etc/state)" $'one\none\ntwo'
check_eq "$(field six/status parent)" two
check_eq "$(grep -c '"forked"' events)" 6
# all or none
expect_error EEXIST dev/error "'one' is there already" put dev/ctl 'fork new one'
check_not test -e new
expect_error EEXIST dev/error "'new' is named twice" put dev/ctl 'fork new new'
expect_error EINVAL dev/error 'no key' put dev/ctl 'fork new new2 colour=red'
expect_error EINVAL dev/error 'template=host' put dev/ctl 'fork new template=host'
expect_error EINVAL dev/error 'usage: fork' put dev/ctl 'fork from=first'
expect_error ENOENT dev/error "no checkpoint 'nothing'" put dev/ctl 'fork new from=nothing'
expect_error EOPNOTSUPP dev/error 'cannot keep memory in checkpoints.*: [a-zA-Z]' put dev/ctl 'fork new memory=yes'
expect_error ENOENT error 'no such sandbox' put ctl 'create new from=nobody'
expect_error EINVAL error 'is no key=value' put ctl 'create new other2 from=dev'
check_eq "$(ls -d new* 2>/dev/null || true)" ''
rmdir one two three four five six

# ---- a daemon that was killed ----
ids() { # of what the backend has
	if [ "$BACKEND" = docker ]; then
		api GET /images/json | grep -o '"cubefs/checkpoint:[0-9a-f]*"' | tr -d '"' | cut -d : -f 2
	else
		ls "$STATE/backends/local/checkpoints" | sed -n 's/^\([0-9a-f]*\)\.json$/\1/p'
	fi
}
lose() { # ID: somebody else removes it
	if [ "$BACKEND" = docker ]; then
		api DELETE "/images/cubefs%2Fcheckpoint:$1?force=1" >"$WORK/out" || true # the tag goes first
	else
		rm "$STATE/backends/local/checkpoints/$1.json"
	fi
}
stray() { # ID OTHER: one that nobody knows
	if [ "$BACKEND" = docker ]; then
		api POST "/images/cubefs%2Fcheckpoint:$2/tag?repo=cubefs/checkpoint&tag=$1"
	else
		echo '{}' >"$STATE/backends/local/checkpoints/$1.json"
	fi
}
for end in stop_cubefs kill_cubefs; do
	cd /
	"$end"
	start_cubefs
	cd "$MNT"
	check_eq "$(ls dev/checkpoints | wc -l)" 5
	check_eq "$(cat dev/checkpoints/first/files/etc/state)" one
	check_eq "$(stat -c %i dev/checkpoints/first/files/etc/state)" "$one"
	check_eq "$(field dev/checkpoints/first/info label.who)" me
done
for round in 1 2 3; do # just as one is taken or removed: whole, or not there
	mkdir dev/checkpoints/"r$round"
	rmdir dev/checkpoints/still 2>/dev/null || true
	(mkdir dev/checkpoints/cut 2>/dev/null || true) &
	cd /
	kill_cubefs
	wait $!
	start_cubefs
	cd "$MNT"
	check_eq "$(cat dev/checkpoints/"r$round"/files/etc/state)" one
	check_not test -e dev/checkpoints/still
	if [ -e dev/checkpoints/cut ]; then
		check_eq "$(cat dev/checkpoints/cut/files/etc/state)" one
		rmdir dev/checkpoints/cut
	fi
done
for delay in 0.01 0.03 0.06; do # just as it is forked: all or none
	(put dev/ctl 'fork k1 k2 k3' 2>/dev/null || true) &
	sleep "$delay"
	cd /
	kill_cubefs
	wait $!
	start_cubefs
	cd "$MNT"
	children=$(find . -maxdepth 1 -name 'k?' | wc -l)
	[ "$children" -eq 0 ] || [ "$children" -eq 3 ] || fail "$children of three children are there"
	[ "$children" -eq 0 ] || rmdir k1 k2 k3
done
known() { # as many as are listed: first, one with a newline, frozen, r1 to r3, and one of other
	[ "$(ids | wc -l)" -eq 7 ]
}
wait_for 20 known
# what the backend lost is said, and listed no more
cd /
stop_cubefs
lost=$(ids | head -n 1)
stray 00000000000000ab "$(ids | tail -n 1)"
lose "$lost"
start_cubefs
cd "$MNT"
wait_for 20 grep -q 'has lost checkpoint' error
wait_for 20 eval '! ids | grep -qx 00000000000000ab'

# ---- the end of a sandbox takes them along ----
rm -rf other
rm -rf dev
check_not test -e dev
wait_for 30 eval '[ -z "$(ids)" ]'
cd /
