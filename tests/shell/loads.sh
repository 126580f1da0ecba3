# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What runs while workers and programs change: loads that end at the first thing that is not as it should be. Read behind
# lib.sh, with D a sandbox's directory and F its files/tmp. A test adds loads of its own, named load_NAME.

exec_state() { # for who looks for the cause
	cat "$D/sessions/s/exit" "$D/sessions/s/status"
	tail -n 2 "$F/counted"
	tail -n 5 "$D/error" "$MNT/error"
	grep . "$D"/jobs/*/cmd | tail -n 5
}

stopped() { [ -e "$WORK/stop" ]; }

load_exec() {
	local n=0 out
	until stopped; do
		n=$((n + 1))
		mkdir "$D/sessions/s" || return 1
		put "$D/sessions/s/exec" "echo $n >>/tmp/counted; echo out $n" || return 1
		out=$(cat "$D/sessions/s/exec") || return 1
		[ "$out" = "out $n" ] || { echo "command $n gave '$out'"; exec_state; return 1; }
		rmdir "$D/sessions/s" || return 1
	done
	echo "$n" >"$WORK/counted"
}

load_append() {
	local n=0
	exec 5>>"$F/log"
	until stopped; do
		n=$((n + 1))
		echo "entry $n" >&5 || return 1
	done
	exec 5>&-
	echo "$n" >"$WORK/appended"
}

load_cubes() {
	local n=0
	until stopped; do
		n=$((n + 1))
		mkdir "$MNT/box$n" || return 1
		put "$MNT/box$n/ctl" 'wait running 60' || return 1
		rmdir "$MNT/box$n" || return 1
	done
}

LOADS=() LOAD_PIDS=()

end_loads() {
	: >"$WORK/stop"
	cd /
	exec 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	wait "${LOAD_PIDS[@]}" || true
}

start_loads() { # NAME ...; for finish_loads exec and append are among them
	local name
	LOADS=("$@")
	on_exit end_loads
	for name in "$@"; do
		"load_$name" >"$WORK/load.$name" 2>&1 &
		LOAD_PIDS+=($!)
	done
}

loads_run() { # WHEN; fails if one has ended
	local i
	for i in "${!LOAD_PIDS[@]}"; do
		if daemon_ended "${LOAD_PIDS[i]}"; then
			fail "$1, ${LOADS[i]}: $(cat "$WORK/load.${LOADS[i]}"; tail -n 3 "$MNT/error")"
		fi
	done
}

# Under the loads, with every pause there may be between two.
kill_workers() { # N; a hundred where there is time
	local n deaths=$1
	[ -z "${CUBEFS_TEST_LONG-}" ] || deaths=100
	for n in $(seq "$deaths"); do
		sleep "0.$((n * 7 % 10))"
		kill_worker
		loads_run "after $n deaths"
	done
}

wait_loads() {
	local i
	: >"$WORK/stop"
	for i in "${!LOAD_PIDS[@]}"; do
		wait "${LOAD_PIDS[i]}" || fail "${LOADS[i]}: $(cat "$WORK/load.${LOADS[i]}")"
	done
}

finish_loads() { # all of them; nothing was lost, and nothing was done twice
	wait_loads
	check_eq "$(cat "$F/counted")" "$(seq "$(cat "$WORK/counted")")" 'commands that ran'
	check_eq "$(cat "$F/log")" "$(for i in $(seq "$(cat "$WORK/appended")"); do echo "entry $i"; done)" 'what was appended'
	check_eq "$(cut -d ' ' -f 1 "$MNT/list")" dev 'sandboxes'
}
