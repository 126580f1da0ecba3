#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pools: sandboxes that are kept started, taken by create, for the local backend.
. "$(dirname "$0")/lib.sh"
start_cubefs
POOLS=$MNT/backends/local/pools
P=$POOLS/p

full() { # POOL COUNT: that many are ready, and nothing is under way
	[ "$(cat "$POOLS/$1/ready")" = "$2" ] && [ "$(field "$POOLS/$1/status" making)" = 0 ] &&
		[ "$(field "$POOLS/$1/status" ending)" = 0 ]
}

there() { # COUNT: so many sandboxes are at the backend
	put "$MNT/backends/local/ctl" refresh
	[ "$(wc -l <"$MNT/backends/local/sandboxes")" = "$1" ]
}

# names
check_eq "$(ls "$POOLS")" ''
mkdir "$P"
check_eq "$(ls "$P" | tr '\n' ' ')" 'ctl log ready size status template '
expect_errno EEXIST mkdir "$P"
for name in cold 'a b' .p -- -p; do expect_errno EINVAL mkdir -- "$POOLS/$name"; done
expect_errno EPERM mv "$P" "$POOLS/q"
expect_errno EPERM rm "$P/size"
check_eq "$(cat "$P/size")" 0
check_eq "$(cat "$P/ready")" 0
check_eq "$(field "$P/status" state)" off

# template and size are checked when they are written
bad() { # FILE TEXT REGEX
	expect_error EINVAL "$MNT/error" "$3" put "$P/$1" "$2"
}
bad template 'colour=red' "no key 'colour'"
bad template 'dev' 'is no key=value'
bad template 'memory=little' 'memory=little'
bad template 'pool=p' 'not made from a pool'
bad template 'backend=other' "of backend 'local'"
bad template 'pids=20 pids=30' 'given twice'
bad template "env.A='open" 'quote'
bad template 'env.A=1 env.A=2' 'given twice'
expect_error ENOENT "$MNT/error" "no template 'none'" put "$P/template" 'template=none'
expect_errno EINVAL bash -c "printf 'colour=red' >'$P/template'"
expect_errno EINVAL bash -c "printf 'pids=20\n\npids=21\n' >'$P/template'"
for size in x -1 '2 1' '1 2 3' 1001 ''; do bad size "$size" "size '"; done
expect_errno EACCES bash -c "echo 1 >'$P/ready'"
check_eq "$(cat "$P/template")" ''
check_eq "$(cat "$P/size")" 0

# it is kept as it was written; nothing of what is kept is seen
put "$P/template" 'pids=200 env.COLOUR=red env.SIZE=big label.team=a'
check_eq "$(cat "$P/template")" 'pids=200 env.COLOUR=red env.SIZE=big label.team=a'
put "$P/size" 2
wait_for 60 full p 2
check_eq "$(field "$P/status" state)" ready
check_eq "$(cat "$MNT/list")" ''
check_eq "$(field "$MNT/ctl" sandboxes)" 0
check_eq "$(grep -c . "$MNT/events" || true)" 0 'events of what is kept'
wait_for 30 there 2
check_eq "$(cut -d ' ' -f 3 "$MNT/backends/local/sandboxes" | sort -u)" -

# one is taken: name, host name, environment, labels are those of the creation
put "$MNT/ctl" 'create one pool=p env.COLOUR=blue label.team=b label.who=me'
check_eq "$(field "$MNT/one/status" state)" running
check_eq "$(field "$MNT/one/status" pool)" p
check_eq "$(field "$MNT/one/status" label.team)" b
check_eq "$(field "$MNT/one/status" label.who)" me
check_match "$(field "$MNT/one/status" limit.pids)" '^200 '
check_eq "$(run one 'hostname; cat /etc/hostname; echo $COLOUR $SIZE; grep -c "127.0.1.1.*one$" /etc/hosts')" \
	$'one\none\nblue big\n1'
check_eq "$(cut -d ' ' -f 1 "$MNT/list")" one
check_match "$(cat "$MNT/events")" '"sandbox": *"one", *"event": *"created"'
check_eq "$(grep -c '"event": *"created"' "$MNT/events")" 1
wait_for 60 full p 2
check_eq "$(field "$P/status" taken)" 1
check_eq "$(field "$P/status" cold)" 0

# what cannot be had of a running one, and what is not there
expect_error EINVAL "$MNT/error" 'memory: with pool=p only' put "$MNT/ctl" 'create two pool=p memory=1G'
expect_error EINVAL "$MNT/error" 'env.1' put "$MNT/ctl" 'create two pool=p env.1=x'
expect_error ENOENT "$MNT/error" "no pool 'q'" put "$MNT/ctl" 'create two pool=q'
expect_error ENOENT "$MNT/error" "no pool 'p'" put "$MNT/ctl" 'create two pool=p backend=other'
expect_error EEXIST "$MNT/error" "'one' is there" put "$MNT/ctl" 'create one pool=p'
check_eq "$(cat "$P/ready")" 2
check_not test -e "$MNT/two"

# more than there are: the rest is made, and says so
put "$P/size" 1
wait_for 60 full p 1
pids=()
for name in two three four; do
	put "$MNT/ctl" "create $name pool=p" &
	pids+=($!)
done
wait "${pids[@]}"
for name in two three four; do
	check_eq "$(run "$name" 'hostname; echo $COLOUR')" "$name"$'\nred'
	field "$MNT/$name/status" pool
done | sort >"$WORK/pools"
check_match "$(tr '\n' ' ' <"$WORK/pools")" '^cold (cold|p) p $'
check_eq "$(exec 3<>"$MNT/ctl"; echo 'create five pool=p net=none' >&3; read -r -u 3 a b _; echo "$a $b")" 'ok name=five'
for name in one two three four five; do rmdir "$MNT/$name"; done

# another template: what was kept after the old one goes
wait_for 60 full p 1
put "$P/template" 'env.COLOUR=green'
wait_for 60 full p 1
put "$MNT/ctl" 'create two pool=p'
check_eq "$(run two 'echo $COLOUR $SIZE')" green
rmdir "$MNT/two"

# drain returns when they are gone, refill when they are there
wait_for 60 full p 1
put "$P/ctl" drain
check full p 0
check_eq "$(field "$P/status" state)" drained
put "$MNT/ctl" 'create two pool=p'
check_eq "$(field "$MNT/two/status" pool)" cold
rmdir "$MNT/two"
put "$P/ctl" refill
check full p 1
expect_errno EINVAL bash -c "echo frobnicate >'$P/ctl'"
expect_errno EINVAL bash -c "echo 'drain now' >'$P/ctl'"

# MIN MAX: filled up to MAX when fewer than MIN are there
put "$P/size" '1 3'
check_eq "$(cat "$P/size")" '1 3'
wait_for 60 full p 3
put "$MNT/ctl" 'create two pool=p'
check_eq "$(cat "$P/ready")" 2
rmdir "$MNT/two"

# over the end of the daemon
put "$P/template" 'env.COLOUR=green label.kept=yes'
wait_for 60 full p 3
wait_for 30 there 3
cut -d ' ' -f 1 "$MNT/backends/local/sandboxes" | sort >"$WORK/before"
tail -n 3 "$P/log" >"$WORK/log.before"
[ -s "$WORK/log.before" ] || fail 'nothing in the log of the pool'
stop_cubefs
start_cubefs
wait_for 60 full p 3
wait_for 30 there 3
check_eq "$(cut -d ' ' -f 1 "$MNT/backends/local/sandboxes" | sort)" "$(cat "$WORK/before")" 'kept over a remount'
check_eq "$(grep -cFxf "$WORK/log.before" "$P/log")" 3 'lines of the log, over a remount'
check_eq "$(cat "$P/template")$(cat "$P/size")" 'env.COLOUR=green label.kept=yes1 3'
put "$MNT/ctl" 'create two pool=p'
check_eq "$(run two 'hostname; echo $COLOUR')" $'two\ngreen'
check_eq "$(field "$MNT/two/status" label.kept)" yes
rmdir "$MNT/two"

# a template that cannot start: rarer and rarer, with the reason; good again when it is mended
mkdir "$POOLS/bad"
mkdir -p "$WORK/root/bin"
T=$MNT/backends/local/templates/hollow
mkdir "$T"
put "$T/ctl" "import $WORK/root"
put "$POOLS/bad/template" 'template=hollow'
put "$POOLS/bad/size" 2
fails() {
	[ "$(field "$POOLS/bad/status" state)" = failing ]
}
wait_for 60 fails
check_match "$(field "$POOLS/bad/status" reason)" 'hollow runs no sandbox'
check_match "$(cat "$POOLS/bad/log")" 'failed: template hollow .*the next attempt is in [0-9]+ s'
check_match "$(field "$POOLS/bad/status" retry)" '^2.*Z$'
expect_error EOPNOTSUPP "$MNT/error" "refill 'bad': .*hollow runs no sandbox" put "$POOLS/bad/ctl" refill
expect_error EOPNOTSUPP "$MNT/error" 'hollow runs no sandbox' put "$MNT/ctl" 'create two pool=bad'
check_not test -e "$MNT/two"
put "$POOLS/bad/template" 'env.GOOD=yes'
wait_for 60 full bad 2
check_eq "$(field "$POOLS/bad/status" failures)" 0
check_eq "$(field "$POOLS/bad/status" reason)" -
rmdir "$POOLS/bad"
mkdir "$POOLS/bad"; check_eq "$(cat "$POOLS/bad/log")" "" "the log of another pool of that name"; rmdir "$POOLS/bad"
wait_for 30 rmdir "$T"

# rm -r does not reach into pools; rmdir ends it with all that it keeps, not with what was taken
wait_for 60 full p 2
put "$MNT/ctl" 'create two pool=p'
check_not rm -r "$P"
check test -d "$P"
rmdir "$P"
check_not test -e "$P"
wait_for 60 there 1
check_eq "$(run two 'echo alive')" alive
expect_error ENOENT "$MNT/error" "no pool 'p'" put "$MNT/ctl" 'create three pool=p'

# the ports of what is kept are nobody's event, until it is taken
mkdir "$POOLS/q"
put "$POOLS/q/template" 'ports=8099'
put "$POOLS/q/size" 1
wait_for 60 full q 1
check_eq "$(grep -c '"port.opened"' "$MNT/events" || true)" 0 'events of ports that are kept'
rmdir "$POOLS/q"
