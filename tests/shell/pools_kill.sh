#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pools and a daemon that is killed at any moment: every sandbox that is there afterwards is kept or has a
# name, none has two, none is left over; a pool that was removed keeps nothing.
. "$(dirname "$0")/lib.sh"
start_cubefs
P=$MNT/backends/local/pools/p
mkdir "$P"
put "$P/template" 'pids=100 label.from=pool'
put "$P/size" 3

at_rest() {
	[ "$(cat "$P/ready")" = 3 ] && [ "$(field "$P/status" making)" = 0 ] &&
		! grep -q ' creating ' "$MNT/list"
}

# The ids at the backend are those of the sandboxes with a name and of three more.
consistent() {
	put "$MNT/backends/local/ctl" refresh
	local there named kept
	there=$(cut -d ' ' -f 1 "$MNT/backends/local/sandboxes" | sort)
	named=$(for status in "$MNT"/s*/status; do [ ! -f "$status" ] || field "$status" id; done | sort)
	kept=$(comm -23 <(printf '%s\n' "$there") <(printf '%s\n' "$named") | grep -c .)
	[ "$(printf '%s\n' "$named" | uniq -d)" = '' ] && [ "$kept" = 3 ] &&
		[ "$(comm -13 <(printf '%s\n' "$there") <(printf '%s\n' "$named") | grep -c .)" = 0 ]
}

wait_for 60 at_rest
for round in 1 2 3 4; do
	pids=()
	for i in 1 2 3 4 5; do
		(put "$MNT/ctl" "create s-$round-$i pool=p") 2>/dev/null &
		pids+=($!)
	done
	# a different moment in each round: after so many answers
	for ((i = 1; i < round; i++)); do wait "${pids[i - 1]}" || true; done
	kill_cubefs
	wait "${pids[@]}" || true
	start_cubefs
	wait_for 60 at_rest
	wait_for 60 consistent
	for status in "$MNT"/s-*/status; do
		[ -f "$status" ] || continue
		name=$(basename "$(dirname "$status")")
		[ "$(field "$status" state)" = running ] || fail "$name is $(field "$status" state)"
		check_eq "$(run "$name" hostname)" "$name"
		rmdir "$MNT/$name"
	done
	wait_for 60 consistent
done

# killed in a drain, and behind a rmdir
(put "$P/ctl" drain) 2>/dev/null &
pid=$!
wait_for 10 eval '[ "$(field "$P/status" state)" = drained ]'
kill_cubefs
wait "$pid" || true
start_cubefs
check_eq "$(field "$P/status" state)" drained
gone() {
	put "$MNT/backends/local/ctl" refresh
	[ ! -s "$MNT/backends/local/sandboxes" ]
}
wait_for 60 gone
put "$P/ctl" refill
wait_for 60 at_rest
rmdir "$P"
kill_cubefs
start_cubefs
check_not test -e "$P"
wait_for 60 gone
