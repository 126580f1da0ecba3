#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine that fails: it never answers, answers nonsense, loses answers, is killed in the middle of whatever it does.
. "$(dirname "$0")/lib.sh"
require_root
require curl python3
start_engine docker
RULES=$WORK/rules ASKED=$WORK/asked
touch "$RULES" "$ASKED"
python3 "$(dirname "$0")/peer.py" "$WORK/peer" "$D/sock" "$RULES" "$ASKED" &
on_exit kill $!
wait_for 20 test -S "$WORK/peer"
printf '[backend docker]\nurl = unix://%s\ntemplate = cubefs-test\n' "$WORK/peer" >"$CONF"
allow_log 'destroy .*: '

faults() { # LINE...: from now on
	printf '%s\n' "$@" >"$RULES.new"
	mv "$RULES.new" "$RULES"
}
well() {
	faults ''
}
boxes_are() { # N
	[ "$(boxes)" = "$1" ]
}
asked() { # REGEX: how often
	grep -Ec "$1" "$ASKED" || true
}
has_asked() { # REGEX N
	[ "$(asked "$1")" -ge "$2" ]
}
nothing_left() {
	boxes_are 0 && [ -z "$(ls -A "$STATE/backends/docker/cubes")" ]
}

start_cubefs --config "$CONF"

# ---- one connection tells of all ----

for n in 1 2 3 4 5; do
	sandbox "box$n"
	ids[n]=cubefs-$(field "$MNT/box$n/status" id)
done
for n in 1 2 3 4 5; do
	api POST "/containers/${ids[n]}/pause" >"$WORK/out"
	wait_for 20 state_is "box$n" paused
done
check_eq "$(asked '^GET /v[0-9.]*/events')" 1
for n in 2 3 4 5; do
	rmdir "$MNT/box$n"
done
wait_for 60 boxes_are 1

# ---- an engine that never answers is waited for by nobody who has lost patience ----

api POST "/containers/${ids[1]}/unpause" >"$WORK/out"
wait_for 20 state_is box1 running
faults 'POST /pause hang'
put "$MNT/box1/ctl" 'pause &'
wait_for 20 has_asked '/pause' 1
rmdir "$MNT/box1"
wait_for 20 nothing_left

# a creation that nobody waits for any more: what the engine makes of it then is removed
go=$WORK/go
faults "POST /containers/create run until [ -e '$go' ]; do sleep 0.1; done"
mkdir "$MNT/slow"
wait_for 20 has_asked '^POST .*/containers/create' 6
rmdir "$MNT/slow"
wait_for 20 eval '[ -z "$(ls -A "$STATE/cubes")" ]'
: >"$go"
wait_for 20 nothing_left

faults 'POST /start hang'
started=$(asked '/start')
mkdir "$MNT/slow"
wait_for 20 has_asked '/start' $((started + 1))
rmdir "$MNT/slow"
wait_for 20 nothing_left

# ---- what it says is not believed, and nothing is left of what failed ----

fails() { # ERRNO SENTENCE LINE...: a creation
	local errno=$1 sentence=$2
	shift 2
	faults "$@"
	expect_error "$errno" "$MNT/error" "$sentence" put "$MNT/ctl" 'create bad'
	well
	check_not test -e "$MNT/bad"
	wait_for 20 nothing_left
}
fails EREMOTEIO 'the engine' 'POST /containers/create drop'
fails EREMOTEIO 'the engine' 'POST /containers/create lose'
fails EREMOTEIO 'the engine' 'POST /containers/create cut 10'
fails EREMOTEIO 'refused by the test' 'POST /containers/create refuse 500'
fails EREMOTEIO 'the engine' 'POST /start cut 10'
fails EREMOTEIO 'the engine' 'GET /images/cubefs-test/json cut 300'
fails EREMOTEIO 'its answer' 'GET /containers/cubefs-.*/json say {"State": {"Running": tr'
fails EEXIST 'cubefs did not make' 'GET /containers/cubefs-.*/json say {"Id": "x", "Config": {"Labels": {}}}'
fails ENOENT "no image 'cubefs-test'" 'GET /images/ refuse 404'
fails EBUSY 'refused by the test' 'POST /containers/create refuse 409'

# ---- what it tells is not believed either ----

sandbox dev
id=cubefs-$(field "$MNT/dev/status" id)
stop_cubefs
faults 'GET /events say {"Type": "container", "Action": "die", "Actor": {"ID": 7}} nonsense'
told=$(asked '/events')
start_cubefs --config "$CONF"
wait_for 20 has_asked '/events' $((told + 2))
well
wait_for 60 state_is dev running
api POST "/containers/$id/pause" >"$WORK/out"
wait_for 60 state_is dev paused
check_eq "$(run dev 'echo here')" here

# ---- it is killed before and after it does what it is asked for; then it is there again ----

usable() {
	put "$MNT/dev/ctl" start 2>/dev/null && [ "$(run dev 'echo here' 2>/dev/null)" = here ]
}
engine_dies() { # WHEN METHOD PATH VERB: and afterwards it can be used again
	local before
	before=$(asked "^$2 .*$3")
	faults "$2 $3 $1 kill -KILL \$(cat $D/pid)"
	put "$MNT/dev/ctl" "$4" 2>"$WORK/said" || true
	wait_for 60 has_asked "^$2 .*$3" $((before + 1))
	wait_for 60 daemon_ended "$(cat "$D/pid")"
	well
	"$ENGINE" again docker "$D" >"$WORK/engine.out" 2>&1 || fail "no engine: $(cat "$WORK/engine.out")"
	wait_for 60 usable # what has become of it meanwhile is known when the engine tells again
}
for when in run after; do
	engine_dies "$when" POST /pause pause
	engine_dies "$when" POST '/(stop|kill)' 'stop 1'
	put "$MNT/dev/ctl" 'stop 0'
	wait_for 60 state_is dev stopped
	engine_dies "$when" POST /start start
done
# a checkpoint is there whole or not at all, and a restore that was cut off has one of the two states
CP=$MNT/dev/checkpoints
put "$MNT/dev/ctl" 'stop 0'
wait_for 60 eval 'put "$MNT/dev/ctl" start'
run dev 'echo old >/workspace/f' >"$WORK/out"
engine_dies after POST /commit 'checkpoint cut'
mkdir "$CP/one"
for when in run after; do
	run dev 'echo new >/workspace/f' >"$WORK/out"
	engine_dies "$when" POST /rename 'restore one'
	check_match "$(run dev 'cat /workspace/f')" '^(old|new)$'
	put "$MNT/dev/ctl" 'restore one'
	check_eq "$(run dev 'cat /workspace/f')" old
	wait_for 60 boxes_are 1
done
[ ! -e "$CP/cut" ] || put "$MNT/dev/ctl" 'restore cut'
check_eq "$(run dev 'cat /workspace/f')" old
rmdir "$CP"/*
mkdir "$CP/cut" # its name is free, whichever it was
rmdir "$CP/cut"

for when in run after; do
	faults "POST /containers/create $when kill -KILL \$(cat $D/pid)"
	check_not put "$MNT/ctl" 'create gone' 2>"$WORK/said"
	wait_for 60 daemon_ended "$(cat "$D/pid")"
	well
	"$ENGINE" again docker "$D" >"$WORK/engine.out" 2>&1 || fail "no engine: $(cat "$WORK/engine.out")"
	check_not test -e "$MNT/gone"
	wait_for 60 boxes_are 1
done
faults "DELETE /containers/ run kill -KILL \$(cat $D/pid)"
rmdir "$MNT/dev"
wait_for 60 daemon_ended "$(cat "$D/pid")"
well
"$ENGINE" again docker "$D" >"$WORK/engine.out" 2>&1 || fail "no engine: $(cat "$WORK/engine.out")"
wait_for 60 nothing_left

# ---- an engine that never answers keeps no daemon ----

sandbox dev
faults '.* . hang'
mkdir "$MNT/slow"
put "$MNT/backends/docker/ctl" 'refresh &'
stop_cubefs
well

start_cubefs --config "$CONF"
wait_for 60 state_is slow running # as was promised
check_eq "$(run dev 'echo here')" here
rmdir "$MNT/slow" "$MNT/dev"
wait_for 60 nothing_left
