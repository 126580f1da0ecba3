#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tour of the manual, as a newcomer types it.
. "$(dirname "$0")/lib.sh"
start_cubefs
cd "$MNT"

check_match "$(head -n 1 README)" '^cubefs: every sandbox is a directory'
[ "$(wc -l <README)" -le 80 ] || fail 'README has more than eighty lines'

mkdir dev
echo 'uname -a' >dev/exec
check_match "$(cat dev/exec)" '^Linux dev '
check_eq "$(cat dev/exit)" 0 exit

mkdir "$WORK/project"
printf 'all:\n\t@echo made\ntest: all\n\t@test -f Makefile && echo tested\n' >"$WORK/project/Makefile"
cp -r "$WORK/project" dev/workspace/
echo 'cd project && make test' >dev/exec
check_eq "$(cat dev/exec)" $'made\ntested' 'output of make'
check_eq "$(cat dev/exit)" 0 exit

mkdir dev/checkpoints/green
echo broken >dev/workspace/project/Makefile
echo 'restore green' >dev/ctl
check_match "$(cat dev/workspace/project/Makefile)" '^all:'

echo 'fork attempt-2 from=green' >dev/ctl
check_match "$(cat attempt-2/workspace/project/Makefile)" '^all:'
rmdir attempt-2

mkdir dev/jobs/server
echo 'while :; do echo tick; sleep 0.1; done' >dev/jobs/server/cmd
wait_for 10 grep -q tick dev/jobs/server/output
check_eq "$(cat dev/jobs/server/exit)" - 'exit of a running job'
timeout 60 tail -n 1000 -f dev/logs >"$WORK/tail" &
for text in ' life running' ' out tested' tick; do
	wait_for 30 grep -q "$text" "$WORK/tail"
done
kill "$!"
wait "$!" || true

rmdir dev
check_not test -e dev
check_eq "$(ls)" "$(printf '%s\n' README backends clone ctl error events list volumes)" 'what is left in the root'
cd /
