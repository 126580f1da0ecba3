#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fork bomb, a memory hog, a flood of output: the neighbour and the daemon stay well.
. "$(dirname "$0")/lib.sh"
start_cubefs
status=$MNT/backends/local/status
can() { grep -qE "^capabilities.* $1( |$)" "$status"; }

sandbox good
check_eq "$(run good 'echo before')" before

if can pids; then
	sandbox bomb pids=60
	mkdir "$MNT/bomb/jobs/bomb"
	put "$MNT/bomb/jobs/bomb/cmd" 'b() { b | b & b; }; b'
	sleep 1
	check_eq "$(run good 'echo during')" during
	timeout 60 rmdir "$MNT/bomb" || fail 'a fork bomb cannot be destroyed'
	check_eq "$(run good 'echo after')" after
	sandbox few pids=30
	run few 'for i in $(seq 100); do sleep 5 & done 2>/dev/null; wait' >/dev/null 2>&1 || true
	check_eq "$(run good 'echo fine')" fine
	rmdir "$MNT/few"
else
	check grep -q '^missing pids ' "$status"
	expect_error EOPNOTSUPP "$MNT/error" pids bash -c "echo 'create bomb pids=60' >'$MNT/ctl'"
fi

if can memory; then
	sandbox hog memory=64M
	mkdir "$MNT/hog/jobs/hog"
	put "$MNT/hog/jobs/hog/cmd" 'exec python3 -c "bytearray(1 << 30)"'
	check_eq "$(cat <>"$MNT/hog/jobs/hog/exit")" 137
	check_eq "$(field "$MNT/hog/jobs/hog/status" ended)" oom
	check_eq "$(run good 'echo during')" during
	put "$MNT/hog/ctl" 'wait running 30'
	check_eq "$(run hog 'echo alive')" alive
	rmdir "$MNT/hog"
else
	expect_error EOPNOTSUPP "$MNT/error" memory bash -c "echo 'create hog memory=64M' >'$MNT/ctl'"
fi

# 400 MB of output with a reader that stalls: the daemon does not grow with it
rss() { local p sum=0; for p in $(daemon_pids); do sum=$((sum + $(awk '/VmRSS/ { print $2 }' "/proc/$p/status"))); done; echo $sum; }
before=$(rss)
mkdir "$MNT/good/jobs/flood"
exec 3<>"$MNT/good/jobs/flood/stdout"
put "$MNT/good/jobs/flood/cmd" 'head -c 400000000 /dev/zero; echo end'
head -c 1000 <&3 >/dev/null
check_eq "$(cat <>"$MNT/good/jobs/flood/exit")" 0
after=$(rss)
# (under a sanitizer freed memory is kept for a while)
[ $((after - before)) -lt 65536 ] || fail "the daemon grew by $((after - before)) KiB"
exec 3>&-
check_eq "$(tail -c 4 "$MNT/good/jobs/flood/stdout")" end
dropped=$(field "$MNT/good/jobs/flood/status" dropped)
[ "$dropped" -gt 0 ] || fail 'nothing was dropped above the limit'
size=$(stat -c %s "$MNT/good/jobs/flood/stdout")
[ "$size" -le 269000000 ] || fail "$size bytes are kept"
check_eq "$(head -c 134300000 "$MNT/good/jobs/flood/stdout" | tail -c 100000 | tr -d '\0' | grep -c 'bytes')" 1 'marker lines'
