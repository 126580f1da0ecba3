#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cubefs top: one table for a pipe, a live one in a terminal, and a mount that is gone or does not answer.
. "$(dirname "$0")/lib.sh"
require tmux
start_cubefs
sandbox red label.team=warm
sandbox green
put "$MNT/ctl" 'create blue pids=100'
put "$MNT/green/ctl" stop
mkdir "$MNT/red/jobs/wait"
put "$MNT/red/jobs/wait/cmd" 'sleep 1000'
wait_for 20 eval '[ "$(field "$MNT/red/jobs/wait/status" state)" = running ]'
check_eq "$(field "$MNT/red/status" commands)" 1

# ---- once ----
table=$(cubefs top -b "$MNT")
check_eq "$(wc -l <<<"$table")" 4
check_match "$(head -n 1 <<<"$table")" '^NAME +STATE +BACKEND +%CPU +MEMORY +DISK +COMMANDS +PIDS +IDLE$'
check_eq "$(awk 'NR > 1 { print $1, $2, $3 }' <<<"$table")" \
	$'blue running local\ngreen stopped local\nred running local'
check_eq "$(awk '$1 == "red" { print $7 }' <<<"$table")" 1
check_eq "$(awk '$1 == "blue" { print $7 }' <<<"$table")" 0
# counters that nobody had asked for before; an ordinary user's machine may not count all of them
[ "$(field "$MNT/red/status" memory)" = - ] ||
	check_match "$(awk '$1 == "red" { print $5 }' <<<"$table")" '^[0-9.]+[KMG]?$' 'memory'
check_eq "$(CUBEFS_MOUNT=$MNT cubefs top | wc -l)" 4 'no terminal'
check_eq "$(CUBEFS_MOUNT=$MNT cubefs top </dev/null | cat | wc -l)" 4

# ---- what is asked wrongly ----
code=0
cubefs top -x 2>"$WORK/out" || code=$?
check_eq "$code" 2
check_match "$(cat "$WORK/out")" 'usage: cubefs top'
code=0
cubefs top -d 0 "$MNT" 2>"$WORK/out" || code=$?
check_eq "$code" 2
code=0
cubefs top -b "$WORK/none" 2>"$WORK/out" || code=$?
check_eq "$code" 1
check_match "$(cat "$WORK/out")" "none/list: No such file"
mkdir "$WORK/other"
check_not cubefs top -b "$WORK/other" 2>/dev/null

# ---- live ----
T=(tmux -S "$WORK/tmux" -f /dev/null)
"${T[@]}" new-session -d -x 110 -y 20 -s top "cubefs top -d 1 '$MNT'; echo ended with \$?; sleep 1000"
on_exit tmux -S "$WORK/tmux" kill-server

screen() {
	"${T[@]}" capture-pane -p -t top
}
shows() { # REGEX
	screen | grep -Eq -- "$1"
}
shows_not() {
	! shows "$1"
}
key() {
	"${T[@]}" send-keys -t top "$@"
}
order() { # the names, from above
	screen | awk '$1 ~ /^(red|green|blue)$/ { printf "%s ", $1 }'
}
ordered() { # NAMES
	[ "$(order)" = "$1" ]
}

wait_for 20 shows '3 sandboxes, 2 running, 0 paused'
wait_for 20 ordered 'blue green red '
check shows '^NAME\* +STATE +BACKEND'
check shows '^q quit'
check shows '^red +running +local .* 1 '
# a command that works is seen
put "$MNT/red/jobs/wait/ctl" kill
mkdir "$MNT/red/jobs/busy"
put "$MNT/red/jobs/busy/cmd" 'while :; do :; done'
if [ "$(field "$MNT/red/status" cpu)" != - ]; then
	wait_for 40 shows '^red +running +local +[1-9][0-9]*\.[0-9]'
fi
# order
key O
wait_for 20 ordered 'red blue green '
key C
wait_for 20 shows '%CPU\*'
key O R
wait_for 20 eval '[[ $(order) == *"red " ]]'
key N
wait_for 20 ordered 'blue green red '
key N
wait_for 20 ordered 'red green blue '
key '>'
wait_for 20 shows 'STATE\*'
key '<'
wait_for 20 ordered 'blue green red '
# filter: name, label
key /
key ee
wait_for 20 ordered 'green '
key BSpace BSpace
key WARM
wait_for 20 ordered 'red '
key Enter
wait_for 20 shows "1 with 'WARM'"
# verbs go to the chosen one
key p
wait_for 20 state_is red paused
wait_for 20 shows '^red +paused'
check shows 'pause red: done'
key r
wait_for 20 state_is red running
key Escape
wait_for 20 ordered 'blue green red '
# a refusal says why
key Home
key j
key p
wait_for 20 shows "pause green: .*'green' is stopped"
# the end is asked for
key Home
key e
wait_for 20 shows "end 'blue'.*y/n"
key n
wait_for 20 shows_not 'y/n'
check test -d "$MNT/blue"
key e
wait_for 20 shows "end 'blue'.*y/n"
key y
wait_for 20 shows '2 sandboxes'
check_not test -e "$MNT/blue"
# help, and another size
key h
wait_for 20 shows 'Any key goes back'
key x
wait_for 20 shows '^q quit'
"${T[@]}" resize-window -t top -x 50 -y 8
wait_for 20 shows '^green +stopped'
check_eq "$(screen | awk 'length > 50' | wc -l)" 0
"${T[@]}" resize-window -t top -x 200 -y 30
wait_for 20 shows 'IDLE'
mkdir "$MNT/fresh"
wait_for 20 shows '^fresh '
key q
wait_for 20 shows 'ended with 0'

# ---- the mount does not answer, and is gone ----
"${T[@]}" respawn-window -k -t top "cubefs top -d 1 '$MNT'; echo ended with \$?; sleep 1000"
wait_for 20 shows '3 sandboxes'
mapfile -t pids < <(daemon_pids)
kill -STOP "${pids[@]}"
wait_for 30 shows 'no answer for [0-9]+ s'
check shows '^green'
code=0
cubefs top -b "$MNT" 2>"$WORK/out" || code=$?
kill -CONT "${pids[@]}"
check_eq "$code" 1
check_match "$(cat "$WORK/out")" 'no answer in 10 s'
wait_for 30 shows '3 sandboxes'
stop_cubefs
wait_for 30 shows 'list: No such file'
key q
wait_for 20 shows 'ended with 0'
