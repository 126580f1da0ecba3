#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a fork's children get of volumes: a copy of each that the parent may write to, of the same moment as its files.
. "$(dirname "$0")/lib.sh"
start_cubefs
cd "$MNT"
put ctl 'create dev volume=work volume./data=data volume./ref=lib,ro'
echo shared >volumes/lib/files/f
run dev 'echo one >f; echo one >/data/f; echo one >/etc/state'

# ---- a copy of each, all of one moment; what is only read is the same one ----
put dev/ctl 'fork a b'
for name in a b; do
	check_eq "$(run $name 'cat f /data/f /etc/state /ref/f' 2>&1)" $'one\none\none\nshared'
	run $name "echo $name >f; echo $name >/data/f"
	check_not run $name 'echo x >/ref/f' 2>/dev/null
done
check_eq "$(run dev 'cat f /data/f')" $'one\none'
check_eq "$(LC_ALL=C ls volumes)" $'data\ndata-a\ndata-b\nlib\nwork\nwork-a\nwork-b'
check_eq "$(cat volumes/work-a/files/f volumes/data-b/files/f volumes/work/files/f)" $'a\nb\none'
check_match "$(cat volumes/lib/info)" 'a'
expect_error EBUSY error 'a' rmdir volumes/work-a
# it outlives the child, as volumes do, and a later child of that name gets one of its own
rm -rf a
check_eq "$(cat volumes/work-a/files/f)" a
put dev/ctl 'fork a'
check_eq "$(run a 'cat f')" one
check_eq "$(cat volumes/work-a-2/files/f volumes/work-a/files/f)" $'one\na'

# ---- names of the copies ----
put dev/ctl 'fork c volume=mine volume./data=own'
check_eq "$(run c 'cat f /data/f')" $'one\none'
check_eq "$(cat volumes/mine/files/f volumes/own/files/f)" $'one\none'
put dev/ctl 'fork d volume./ref=other volume./more=mine'
check_eq "$(run d 'cat f /more/f; ls /ref')" $'one\none'
run d 'echo d >/more/f'
check_eq "$(cat volumes/mine/files/f)" d
put dev/ctl 'fork r volume=frozen,ro'
check_eq "$(run r 'cat f')" one
check_not run r 'echo x >f' 2>/dev/null
# all or none
# shellcheck disable=SC2034 # used by eval
before=$(LC_ALL=C ls volumes)
expect_error EEXIST dev/error "volume 'mine' is there already" put dev/ctl 'fork e volume=mine'
expect_error EEXIST dev/error "volume 'both' is there already" put dev/ctl 'fork e g volume=both'
expect_error EINVAL dev/error 'no name for a volume' put dev/ctl 'fork e volume=a/b'
expect_error EINVAL dev/error 'no name for a volume' put dev/ctl 'fork e volume=.'
expect_error EEXIST dev/error "'c' is there already" put dev/ctl 'fork e c'
check_not test -e e
wait_for 20 eval '[ "$(LC_ALL=C ls volumes)" = "$before" ]'
# create from=: a name that is there is that volume
put ctl 'create h from=dev volume=mine'
check_eq "$(run h 'cat f /data/f')" $'d\none'
put ctl 'create i from=dev'
check_eq "$(run i 'cat f')" one

# ---- of a checkpoint: its files, and the volumes as they are now ----
mkdir dev/checkpoints/cp
run dev 'echo two >f; echo two >/etc/state'
put dev/checkpoints/cp/ctl 'fork j'
check_eq "$(run j 'cat f /etc/state')" $'two\none'
check_eq "$(ls dev/checkpoints)" cp
put dev/ctl 'restore cp' # volumes stay as they are
check_eq "$(run dev 'cat f /etc/state')" $'two\none'

# ---- one volume at several places, and names that would be the same once cut ----
L=a123456789b123456789c123456789d123456789e12
put ctl "create p volume./x=${L}one volume./y=${L}two volume./r=same,ro volume./p=same volume./q=same"
run p 'echo 1 >/x/f; echo 2 >/y/f; echo 3 >/p/f'
put p/ctl 'fork q volume./z=same-q'
check_eq "$(run q 'cat /x/f /y/f /p/f /q/f /r/f; ls /z')" $'1\n2\n3\n3\n3'
run q 'echo q >/p/f'
check_not run q 'echo x >/r/f' 2>/dev/null
check_eq "$(run q 'cat /q/f /r/f'; run p 'cat /p/f /r/f')" $'q\nq\n3\n3'
check_eq "$(cd volumes && echo same*)" 'same same-q same-q-2'
rm -rf p q

# ---- one moment: written in order, never seen in the other ----
mkdir dev/jobs/writer
put dev/jobs/writer/cmd 'i=0; while :; do i=$((i + 1)); echo $i >/srv/n.new; mv /srv/n.new /srv/n; echo $i >/workspace/n.new; mv /workspace/n.new /workspace/n; echo $i >/data/n.new; mv /data/n.new /data/n; done'
wait_for 20 test -s volumes/data/files/n
for round in 1 2 3; do
	put dev/ctl "fork m$round"
	mapfile -t n < <(run "m$round" 'cat /srv/n /workspace/n /data/n')
	{ [ "${n[2]}" -le "${n[1]}" ] && [ "${n[1]}" -le "${n[0]}" ] && [ $((n[0] - n[2])) -le 1 ]; } || fail "round $round: ${n[*]}"
	rm -rf "m$round"
done
put dev/jobs/writer/ctl 'kill KILL'

# ---- a daemon that is killed: all or none, of the volumes too ----
# shellcheck disable=SC2034 # used by eval
before=$(LC_ALL=C ls volumes)
for delay in 0.01 0.04 0.1; do
	(put dev/ctl 'fork k1 k2' 2>/dev/null || true) &
	sleep "$delay"
	cd /
	kill_cubefs
	wait $!
	start_cubefs
	cd "$MNT"
	if [ -e k1 ] || [ -e k2 ]; then
		check_eq "$(run k1 'cat f'; run k2 'cat f')" $'two\ntwo'
		rm -rf k1 k2
		wait_for 30 eval 'rmdir volumes/*-k[12]* 2>/dev/null'
	fi
	wait_for 30 eval '[ "$(LC_ALL=C ls volumes)" = "$before" ]'
done
# as between two that say that they are kept: all as soon as the first says so, and none before
as_cut() { # NAME: as it was on disk before it said so
	python3 - "$first" "$STATE"/cubes/"${uid[$1]}"/cube.json <<'END'
import json, sys
with open(sys.argv[2]) as f:
    cube = json.load(f)
cube.update(keep=False, fork=sys.argv[1])
with open(sys.argv[2], "w") as f:
    json.dump(cube, f)
END
}
declare -A uid
for cut in 'k2 k3' 'k1 k2 k3'; do
	put dev/ctl 'fork k1 k2 k3'
	for name in k1 k2 k3; do
		uid[$name]=$(field $name/status uid)
	done
	first=${uid[k1]}
	cd /
	kill_cubefs
	for name in $cut; do
		as_cut "$name"
	done
	start_cubefs
	cd "$MNT"
	if [ "$cut" = 'k2 k3' ]; then
		check_eq "$(run k1 'cat f'; run k2 'cat f'; run k3 'cat f')" $'two\ntwo\ntwo'
		rm -rf k1
		cd /
		kill_cubefs
		start_cubefs
		cd "$MNT"
		check_eq "$(run k2 'cat f'; run k3 'cat f')" $'two\ntwo'
		rm -rf k2 k3
		wait_for 30 eval 'rmdir volumes/*-k[123]* 2>/dev/null'
	else
		wait_for 30 eval '[ ! -e k1 ] && [ ! -e k2 ] && [ ! -e k3 ]'
	fi
	wait_for 30 eval '[ "$(LC_ALL=C ls volumes)" = "$before" ]'
done
wait_for 20 eval '[ "$(ls "$STATE/backends/local/checkpoints" | wc -l)" -eq 1 ]' # what forks took is gone with them
for name in dev a b c d h i j r; do
	[ ! -e "$name" ] || rm -rf "$name"
done
wait_for 60 eval 'rmdir volumes/* 2>/dev/null; [ -z "$(ls volumes)" ]'
cd /
