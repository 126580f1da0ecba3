#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A thousand named jobs and hundreds of numbered ones in one sandbox: listed, found, removed, there after a remount.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
J=$MNT/dev/jobs
mapfile -t NAMES < <(printf 'job-%04d\n' {1..1000})
run_some() { # FROM TO: numbered ones, by exec
	local i
	for ((i = $1; i <= $2; i++)); do
		put "$MNT/dev/exec" "echo $i"
	done
}
numbers() { find "$J" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' -printf '%f\n' | sort -n; }
named() { find "$J" -mindepth 1 -maxdepth 1 -type d -name 'job-*' -printf '%f\n' | sort; }
kept() { [ "$(numbers | wc -l)" -le 128 ]; } # what ended goes behind

(cd "$J" && mkdir "${NAMES[@]}")
check_eq "$(named)" "$(printf '%s\n' "${NAMES[@]}")"
expect_errno EEXIST mkdir "$J/job-0500"
for i in {0001..0100}; do
	put "$J/job-$i/cmd" "echo named $i"
done
for i in {0001..0100}; do
	check_eq "$(cat <>"$J/job-$i/output")" "named $i"
done

# numbers go on behind the thousand; the last 128 that ended are kept, nothing named goes
run_some 1001 1300
wait_for 20 kept
check_eq "$(numbers)" "$(seq 1173 1300)"
check_eq "$(named | wc -l)" 1000
check_eq "$(cat "$J/1173/output" "$J/1300/output")" $'1173\n1300'
check_not test -e "$J/1172"
check_eq "$(readlink "$J/last")" 1300
# fixed entries first, each name once, however it is read
mapfile -t ALL < <(ls -U "$J")
check_eq "${ALL[0]}" clone
check_eq "$(ls -A "$J" | sort | uniq -d)" ''
check_eq "$(ls -A "$J" | wc -l)" 1130

# what goes from the middle of a listing takes nothing else along
(cd "$J" && rmdir job-02?? job-09?1)
check_eq "$(named | wc -l)" 890
check_not test -e "$J/job-0250"
check test -d "$J/job-0301"

# a daemon that is killed, one that ends in order: all of it is there, and goes on
for end in kill_cubefs stop_cubefs; do
	$end
	start_cubefs
	put "$MNT/dev/ctl" 'wait running 60'
	check_eq "$(named | wc -l)" 890
	check_eq "$(cat "$J/job-0001/output" "$J/job-0100/output")" $'named 0001\nnamed 0100'
	check_eq "$(cat "$J/job-0300/exit")" -
	last=$(numbers | tail -n 1)
	check_eq "$(numbers | wc -l)" 128
	run_some $((last + 1)) $((last + 20))
	wait_for 20 kept
	check_eq "$(numbers)" "$(seq $((last - 107)) $((last + 20)))"
	check_eq "$(cat "$J/$((last + 20))/output")" $((last + 20))
done
put "$J/job-0300/cmd" 'echo late'
check_eq "$(cat <>"$J/job-0300/output")" late
