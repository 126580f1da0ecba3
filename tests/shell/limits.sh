#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Limits that are changed while a sandbox runs: in force at once, kept over everything; memory that runs out.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
status=$MNT/backends/local/status
can() { grep -qE "^capabilities.* $1( |$)" "$status"; }
grouped() { [ -n "$(group_dir pids)" ]; } # by control groups; an ordinary user may have another way
group_dir() { # CONTROLLER: where it is for dev
	find /sys/fs/cgroup -type d -name "*$(field "$MNT/dev/status" id)*" -path "*/$1/*" 2>/dev/null | head -n 1
}
group_is() { # CONTROLLER V1-FILE V2-FILE VALUE: what the kernel keeps
	local dir
	dir=$(group_dir "$1")
	if [ -n "$dir" ]; then
		check_eq "$(cat "$dir/$2")" "$4" "$2"
	else
		dir=$(find /sys/fs/cgroup -type d -name "*$(field "$MNT/dev/status" id)*" | head -n 1)
		check_match "$(cat "$dir/$3")" "^$4( |$)" "$3"
	fi
}
# How many children a process gets, 200 at most; how the allocation of so many MiB ends.
forks() {
	run dev 'python3 -c "
import os, signal, time
pids = []
try:
    for i in range(200):
        pid = os.fork()
        if pid == 0: time.sleep(1000)
        pids.append(pid)
except OSError: pass
for pid in pids: os.kill(pid, signal.SIGKILL)
for pid in pids: os.waitpid(pid, 0)
print(len(pids))"'
}
takes() { run dev "{ python3 -c 'bytearray($1 << 20)'; } >/dev/null 2>&1; echo \$?"; }
limit_is() { check_match "$(field "$MNT/dev/status" "limit.$1")" "^$2( |$)" "limit.$1"; }

sandbox dev
D=$MNT/dev

# ---- wrong values: nothing changes ----

before=$(grep '^limit' "$D/status")
for bad in memory=x memory=-1 memory=0 memory=1K memory= memory=1Q cpus=0 cpus=x cpus=-1 cpus=99999 cpus= pids=0 pids=7 \
	pids=x pids=1.5 pids=99999999999 pids=; do
	expect_error EINVAL "$D/error" "${bad%%=*}" put "$D/ctl" "set $bad"
done
expect_errno EINVAL put "$D/ctl" 'set memory'
check_eq "$(grep '^limit' "$D/status")" "$before"

# ---- what this machine cannot keep ----

for key in memory=64M cpus=1 pids=99 disk=1G; do
	can "${key%%=*}" || expect_error EOPNOTSUPP "$D/error" "${key%%=*}" put "$D/ctl" "set $key"
done
check_eq "$(grep '^limit' "$D/status")" "$before"

# ---- processes ----

if can pids && grouped; then
	check_eq "$(forks)" 200
	put "$D/ctl" 'set pids=40'
	limit_is pids 40
	n=$(forks)
	[ "$n" -gt 5 ] && [ "$n" -lt 40 ] || fail "$n children of 40 processes"
	put "$D/ctl" 'set pids=500'
	check_eq "$(forks)" 200
	put "$D/ctl" 'set pids=41'
	put "$D/ctl" restart
	limit_is pids 41
	[ "$(forks)" -lt 41 ] || fail 'the limit is gone after a restart'
	group_is pids pids.max pids.max 41
elif can pids; then # one that the kernel keeps by the user: from the next start on
	expect_error EBUSY "$D/error" 'while it is stopped' put "$D/ctl" 'set pids=60'
	put "$D/ctl" 'stop 0'
	put "$D/ctl" 'set pids=60'
	put "$D/ctl" start
	limit_is pids 60
	[ "$(forks)" -lt 60 ] || fail 'the limit is not in force'
fi

# ---- cpus: what the kernel was told ----

if can cpus; then
	put "$D/ctl" 'set cpus=0.5'
	limit_is cpus 0.500
	group_is cpu cpu.cfs_quota_us cpu.max 50000
	put "$D/ctl" 'set cpus=2'
	group_is cpu cpu.cfs_quota_us cpu.max 200000
fi

# ---- memory; what runs out of it is told apart ----

ended() { # JOB: by what, its code
	field "$D/jobs/$1/status" ended
	cat <>"$D/jobs/$1/exit"
}
if can memory; then
	check_eq "$(takes 100)" 0
	put "$D/ctl" 'set memory=64M'
	limit_is memory 67108864
	group_is memory memory.limit_in_bytes memory.max 67108864
	mkdir "$D/jobs/hog" "$D/jobs/killed" "$D/jobs/itself"
	put "$D/jobs/hog/cmd" 'exec python3 -c "bytearray(200 << 20)"'
	check_eq "$(cat <>"$D/jobs/hog/exit")" 137
	check_eq "$(ended hog)" $'oom\n137'
	check grep -q '"sandbox":"dev","event":"oom","detail":"hog"' "$MNT/events"
	check_eq "$(takes 100)" 137
	# neither what cubefs ends nor what ends itself
	put "$D/jobs/killed/cmd" 'exec sleep 1000'
	put "$D/jobs/killed/ctl" 'kill KILL'
	check_eq "$(cat <>"$D/jobs/killed/exit")" 137
	check_eq "$(ended killed)" $'killed\n137'
	put "$D/jobs/itself/cmd" 'kill -KILL $$'
	check_eq "$(cat <>"$D/jobs/itself/exit")" 137
	check_eq "$(ended itself)" $'signal\n137'
	check_eq "$(grep -c '"event":"oom"' "$MNT/events")" 1
	# more again: at once, for the same session
	put "$D/ctl" 'set memory=256M'
	check_eq "$(takes 100)" 0
	# while it is stopped: from its next start on
	put "$D/ctl" 'stop 0'
	put "$D/ctl" 'set memory=72M'
	limit_is memory 75497472
	put "$D/ctl" start
	group_is memory memory.limit_in_bytes memory.max 75497472
	check_eq "$(takes 100)" 137
	# while it is paused: also in force at once
	put "$D/ctl" pause
	put "$D/ctl" 'set memory=80M'
	group_is memory memory.limit_in_bytes memory.max 83886080
	put "$D/ctl" resume
fi

# ---- all of it is there after the daemon's end, orderly or not ----

after=$(grep '^limit' "$D/status")
for end in stop_cubefs kill_cubefs; do
	$end
	start_cubefs
	put "$D/ctl" 'wait running 60'
	check_eq "$(grep '^limit' "$D/status")" "$after" "limits after $end"
	put "$D/ctl" restart
	check_eq "$(grep '^limit' "$D/status")" "$after" "limits after $end and a restart"
	if can memory; then
		group_is memory memory.limit_in_bytes memory.max 83886080
		check_eq "$(takes 100)" 137
	fi
	! can cpus || group_is cpu cpu.cfs_quota_us cpu.max 200000
	! can pids || ! grouped || group_is pids pids.max pids.max 41
done
