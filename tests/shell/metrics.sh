#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# metrics: what a sandbox uses, a line a sample. access: how other tools reach it.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
put "$MNT/ctl" 'create dev memory=200M' 2>/dev/null || put "$MNT/ctl" 'create dev'
D=$MNT/dev

# ---- metrics ----

# The channel gives those to come; the plain file those there are, with its true size.
timeout 60 cat <>"$D/metrics" >"$WORK/metrics" & reader=$!
on_exit eval "kill $reader 2>/dev/null || true"
wait_for 40 test -s "$WORK/metrics"
line=$(head -n 1 "$WORK/metrics")
check_eq "$(wc -w <<<"$line")" 9
check_match "$line" '^20[0-9-]+T[0-9:.]+Z ([0-9]+\.[0-9]{3}|-) ([0-9]+|-) ([0-9]+|-) ([0-9]+|-) - ([0-9]+|-) ([0-9]+|-) ([0-9]+|-)$'
check grep -qxF -- "$line" "$D/metrics"
check_eq "$(stat -c %s "$D/metrics")" "$(wc -c <"$D/metrics")"
check_eq "$(stat -c %a "$D/metrics")" 644
expect_errno EPERM put "$D/metrics" x
limit=$(field "$D/status" limit.memory)
[[ $limit != *' kept' || $limit == *'not kept' ]] || check_eq "$(cut -d ' ' -f 4 <<<"$line")" "${limit% kept}" 'memory limit'
# CPU seconds are counted.
run dev 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
more() { # than one line, and the last says more cpu than the first
	[ "$(wc -l <"$D/metrics")" -ge 2 ] && awk 'NR == 1 { first = $2 } END { exit !($2 == "-" || $2 > first) }' "$D/metrics"
}
wait_for 60 more
kill $reader
lines=$(wc -l <"$D/metrics")

# A paused one is not sampled; what there is stays, over the end of the daemon too.
put "$D/ctl" stop
first=$(head -n 1 "$D/metrics")
stop_cubefs
start_cubefs
check_eq "$(head -n 1 "$D/metrics")" "$first"
[ "$(wc -l <"$D/metrics")" -ge "$lines" ] || fail 'samples were lost'

# ---- access ----

check_eq "$(stat -c %a "$D/access")" 400
expect_errno EACCES bash -c ": >>'$D/access'"
check_eq "$(cat "$D/access")" 'os linux' 'while it is stopped'
put "$D/ctl" start
check_match "$(cat "$D/access")" $'^agent cube-init unix:/[^\n]*\nos linux$'
socket=$(sed -n 's/^agent cube-init unix://p' "$D/access")
# It is the sandbox's agent that answers there: its first frame comes without being asked for.
check test -S "$socket"
