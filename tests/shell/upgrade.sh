#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Another program takes over under load: nothing is lost, nothing is done twice, nobody sees an error. One that cannot is
# refused, or gives it back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/loads.sh"
allow_log 'error supervise the worker ended|warning supervise .*another one takes over'
# As a package has it: a program and its agent, replaced by others under the same names.
install_cubefs() { # PROGRAM
	mkdir -p "$WORK/bin"
	cp "$CUBEFS_BUILD_DIR/cube-init" "$WORK/bin/cube-init.new"
	cp "$CUBEFS_BUILD_DIR/$1" "$WORK/bin/cubefs.new"
	mv "$WORK/bin/cube-init.new" "$WORK/bin/cube-init"
	mv "$WORK/bin/cubefs.new" "$WORK/bin/cubefs"
}
install_cubefs fs/cubefs
PATH=$WORK/bin:$PATH
mkdir "$WORK/config"
printf '[daemon]\njobs_kept = 77\n' >"$WORK/config/cubefs.conf"
start_cubefs --config "$WORK/config/cubefs.conf"
rm "$WORK/config/cubefs.conf" # what it says holds for the mount
sandbox dev
D=$MNT/dev
F=$D/files/tmp
upgrade() { # PROGRAM
	install_cubefs "$1"
	cubefs upgrade "$MNT"
}
super() { pgrep -P "$CUBEFS_PID" '^cubefs-super'; }
refused() { # PROGRAM REGEX
	local out
	wait_for 30 one_worker
	install_cubefs "$1"
	if out=$(cubefs upgrade "$MNT" 2>&1); then
		fail "the upgrade to $1 is not refused"
	fi
	check_match "$out" "$2"
}

# ---- what is open stays open, what waits goes on, by another program in the same processes ----

supervisor=$(super)
exec 5>>"$F/appended"
exec 6<>"$D/exec"
exec 8<>"$MNT/clone"
read -r made <&8
echo hold >&8
echo first >&5
echo 'i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo "line $i"; sleep 0.05; done' >&6
cat <&6 >"$WORK/lines" &
reader=$!
put "$D/exec" 'sleep 1; echo ran >>/tmp/ran; echo done' &
runner=$!
echo unlinked >"$F/unlinked"
exec 9<"$F/unlinked"
rm "$F/unlinked"
exec 4>"$D/exec"
env printf 'echo whole; ' >&4
check_eq "$(field "$MNT/ctl" version)" "$(cubefs --version | cut -d ' ' -f 2)" 'the version before'
started=$(field "$MNT/ctl" started)
put "$MNT/ctl" 'set ready_timeout=123'
check upgrade tests/shell/cubefs-next
check_eq "$(field "$MNT/ctl" version)" next 'the version that serves'
check_not [ "$(field "$MNT/ctl" started)" = "$started" ]
check_eq "$(field "$MNT/ctl" jobs_kept)" 77 'what the configuration said'
check_eq "$(field "$MNT/ctl" ready_timeout)" 123 'what was set'
check_eq "$(super)" "$supervisor" 'the supervisor'
for pid in $(daemon_pids); do
	[[ $(cat "/proc/$pid/comm") == cubefs-@(holder|canary) ]] || check_match "$(readlink "/proc/$pid/exe")" "$WORK/bin/cubefs$"
done
echo second >&5
env printf 'echo command' >&4
exec 4>&-
check wait "$runner"
check wait "$reader"
check_eq "$(cat "$WORK/lines")" "$(for i in $(seq 40); do echo "line $i"; done)" 'lines of a channel'
check_eq "$(cat "$F/appended")" $'first\nsecond' 'the appended file'
check_eq "$(cat "$F/ran")" ran 'how often it ran'
check_eq "$(cat <&9)" unlinked 'the unlinked file'
check_eq "$(cat "$D/exec")" $'whole\ncommand' 'a command written in halves'
check test -d "$MNT/$made"
exec 5>&- 6>&- 8>&- 9>&-
wait_for 30 eval '! test -d "$MNT/$made"'
check_not grep -q 'another one took over' "$MNT/error"

# ---- refused, before anything is given up ----

wait_for 30 one_worker
before=$WORKER
# what is in the state directory was written by a later one
put "$STATE/format" 4711
refused fs/cubefs 'cannot take over: .*later cubefs \(format 4711.*--state'
put "$STATE/format" 1
refused tests/shell/cubefs-other 'cannot take over: .*another version.*unmount'
check_match "$(cubefs upgrade "$WORK" 2>&1 || true)" "$WORK: no cubefs is mounted there"
check_match "$(cubefs upgrade "$WORK/nowhere" 2>&1 || true)" 'no cubefs is mounted there'
check_match "$(cubefs upgrade 2>&1 || true)" 'usage: cubefs upgrade MOUNTPOINT'
check_match "$(cubefs takeover serve 0 2>&1 || true)" 'cubefs'
wait_for 30 one_worker
check_eq "$WORKER" "$before" 'the worker'
check_eq "$(run dev 'echo on')" on

# ---- one that never says whether it can is not waited for: a worker that dies meanwhile is followed ----

ask() { # PROGRAM: what `cubefs upgrade` does, for a program that is none of ours
	python3 -B - "$STATE/upgrade" "$1" <<'END'
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
socket.send_fds(s, [b"cubefs upgrade 1"], [os.open(sys.argv[2], os.O_RDONLY)])
print(s.recv(1024).decode())
END
}
require python3
checked() { pgrep -P "$(super)" '^yes$' >/dev/null; }
not_checked() { ! checked; }
# it has ten seconds, of which a busy machine may take all before the worker is followed: then it is asked again
for try in 1 2 3 never; do
	[ "$try" != never ] || fail 'a worker that died while the new program was asked was not followed before it was refused'
	ask "$(command -v yes)" >"$WORK/asked" &
	asked=$!
	wait_for 30 checked
	kill_worker
	check_eq "$(run dev 'echo on')" on
	followed=no
	! checked || followed=yes
	check wait "$asked"
	check_match "$(cat "$WORK/asked")" '^no the new program cannot take over: takeover check'
	wait_for 10 not_checked
	[ "$followed" = no ] || break
done

# ---- one whose worker dies gives it back: the program before is nowhere any more but in the processes ----

allow_log 'warning upgrade the new program.s worker ended before it served'
exec 5>>"$F/appended"
refused tests/shell/cubefs-broken "worker ended before it served.*goes on"
check_eq "$(field "$MNT/ctl" version)" next 'the version that serves'
echo third >&5
exec 5>&-
check_eq "$(tail -n 1 "$F/appended")" third
check_eq "$(super)" "$supervisor" 'the supervisor'
check_eq "$(field "$MNT/ctl" ready_timeout)" 123 'what was set, by the program that got it back'
kill_worker
check_eq "$(run dev 'echo on')" on

# ---- under load ----

load_files() {
	local n=0
	until stopped; do
		n=$((n + 1))
		mkdir "$F/d" || return 1
		echo "$n" >"$F/d/a" || return 1
		mv "$F/d/a" "$F/d/b" || return 1
		[ "$(cat "$F/d/b")" = "$n" ] || return 1
		rm "$F/d/b" || return 1
		rmdir "$F/d" || return 1
	done
}
start_loads exec append files cubes
programs=(fs/cubefs tests/shell/cubefs-next)
for n in $(seq 10); do
	sleep "0.$((n * 7 % 10))"
	check upgrade "${programs[n % 2]}"
	loads_run "after $n upgrades"
done
finish_loads

# ---- somebody else may not ----

if [ "$TEST_UID" -eq 0 ] && id nobody >/dev/null 2>&1; then
	out=$(setpriv --reuid nobody --clear-groups cubefs upgrade "$MNT" 2>&1 || true)
	check_match "$out" 'only who mounted it and root may upgrade it'
fi

# ---- root may, though it is another's and root cannot look into it ----

if [ "$TEST_UID" -eq 0 ] && id nobody >/dev/null 2>&1 && [ "$(stat -c %a /dev/fuse)" = 666 ]; then
	mkdir "$WORK/other"
	chown nobody: "$WORK/other"
	as_nobody() {
		setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups env HOME="$WORK/other" "$@"
	}
	check as_nobody cubefs --state "$WORK/other/state" "$WORK/other/mnt"
	on_exit eval "umount -l '$WORK/other/mnt' 2>/dev/null || true"
	expect_errno EACCES ls "$WORK/other/mnt"
	check cubefs upgrade "$WORK/other/mnt"
	check_match "$(tail -n 20 "$WORK/other/state/cubefs.log")" 'has taken over'
	check as_nobody cubefs umount "$WORK/other/mnt"
fi

# ---- an orderly end by the new program ----

stop_cubefs
