#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The machine is booted anew: what ran is lost, and says so; what did not run is as it was; all of it starts again.
. "$(dirname "$0")/lib.sh"
start_cubefs
can() { grep -qE "^capabilities.* $1( |$)" "$MNT/backends/local/status"; }
names=(dev down)
sandbox dev
sandbox down
put "$MNT/down/ctl" stop
if can pause; then
	names+=(still)
	sandbox still
	put "$MNT/still/ctl" pause
fi
D=$MNT/dev
check_eq "$(run dev 'echo kept >/etc/kept; echo done')" 'done'
mkdir "$D/jobs/long" "$D/jobs/short"
put "$D/jobs/short/cmd" 'exit 3'
put "$D/jobs/long/cmd" 'echo begun; exec sleep 1000'
wait_for 20 grep -q begun "$D/jobs/long/output"
check_eq "$(cat <>"$D/jobs/short/exit")" 3
(put "$D/exec" 'echo fore; echo x >/workspace/fore; exec sleep 1000' || true) 2>/dev/null &
writer=$!
wait_for 20 test -s "$D/workspace/fore"

# Another boot: no process of before is there, their records are of another life of the machine.
kill_cubefs
wait "$writer"
records=("$STATE"/backends/local/cubes/*/local.json)
check_eq "${#records[@]}" "${#names[@]}"
for record in "${records[@]}"; do
	pid=$(grep -oP '"pid":\K[0-9]+' "$record")
	if [ "$pid" -ne 0 ]; then
		kill -KILL "$pid"
		wait_for 20 daemon_ended "$pid"
	fi
	sed -i -E 's/"boot":"[0-9a-f-]{36}"/"boot":"00000000-0000-4000-8000-000000000000"/' "$record"
	check grep -q '"boot":"00000000-' "$record"
done
start_cubefs

put "$D/ctl" 'wait stopped 60'
check_eq "$(field "$D/status" reason)" lost
check_eq "$(field "$D/status" terminal)" no
check_eq "$(cat <>"$D/exit")" lost 'the exit of the command in front'
check_eq "$(cat "$D/exec")" fore
check_eq "$(cat <>"$D/jobs/long/exit")" lost
for key in exit ended; do
	check_eq "$(field "$D/jobs/long/status" $key)" lost "$key of the job"
done
check_eq "$(field "$D/jobs/long/status" signal)" -
check_eq "$(cat "$D/jobs/long/output")" begun
check_eq "$(cat "$D/jobs/short/exit")" 3 'a job that had ended'
events() { # NAME EVENT
	grep -c "\"sandbox\":\"$1\",\"event\":\"$2\"" "$MNT/events" || true
}
check_eq "$(events dev lost)" 1
check_eq "$(field "$MNT/down/status" reason)" stopped
check_eq "$(events down lost)" 0
if can pause; then
	put "$MNT/still/ctl" 'wait stopped 60'
	check_eq "$(field "$MNT/still/status" reason)" lost
	check_eq "$(events still lost)" 1
fi

# another daemon says the same, once
stop_cubefs
start_cubefs
put "$D/ctl" 'wait stopped 60'
check_eq "$(field "$D/status" reason)" lost
check_eq "$(cat "$D/jobs/long/exit")" lost
check_eq "$(events dev lost)" 1

for name in "${names[@]}"; do
	put "$MNT/$name/ctl" start
	check_eq "$(run "$name" 'echo again')" again
	check_eq "$(field "$MNT/$name/status" reason)" -
done
check_eq "$(run dev 'cat /etc/kept')" kept
stop_cubefs
