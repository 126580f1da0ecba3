#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon, or its worker alone, is killed while other states of a sandbox's files are made, used and removed:
# what is listed afterwards is whole, what is not listed has left nothing, and names are free. In the store that this
# user gets here, and in that of plain copies. One moment of each, which is what CI has the time for; twelve with
# CUBEFS_TEST_LONG=1.
. "$(dirname "$0")/lib.sh"
allow_log 'warning supervise the worker ended \(signal 9\): another one takes over'
MOMENTS=1
[ -z "${CUBEFS_TEST_LONG-}" ] || MOMENTS=12
declare -A LENGTH=() # of each operation, in microseconds
SUM=                 # of the files that every state has

# ---- what there is ----

# The store's sets, where one can look at them: an image is mounted by the daemon where nobody else sees it.
sets_dir() {
	local image=$STATE/backends/local/store.btrfs
	if [ -e "$image" ]; then
		if ! is_mounted "$WORK/image"; then
			mkdir -p "$WORK/image"
			mount -t btrfs "$(losetup -n -O NAME -j "$image")" "$WORK/image"
		fi
		echo "$WORK/image/layers"
	else
		echo "$STATE/backends/local/layers"
	fi
}

image_away() {
	! is_mounted "$WORK/image" || umount "$WORK/image"
}

entries() { # DIRECTORY
	find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}

# As many as are listed, and nothing beside them: no half of one, no set that belongs to nothing.
nothing_left() {
	local cubes checkpoints listed
	listed=$(find "$MNT"/*/checkpoints -mindepth 1 -maxdepth 1 | wc -l)
	cubes=$(entries "$STATE/backends/local/cubes")
	checkpoints=$(entries "$STATE/backends/local/checkpoints" | sed 's/\.json$//')
	[ "$(grep -c . <<<"$cubes")" -eq "$(wc -l <"$MNT/list")" ] &&
		[ "$(grep -c . <<<"$checkpoints")" -eq "$listed" ] &&
		[ "$(entries "$(sets_dir)")" = "$(printf '%s\n' "$cubes" "$checkpoints" | grep . | sort)" ]
}

# Accounts of subvolumes that are gone: one whose data others shared is kept as long as these, and goes at the next start.
accounts_left() {
	local dir
	dir=$(sets_dir)
	comm -13 <(btrfs subvolume list "$dir" | awk '{ print $2 }' | sort) \
		<(btrfs qgroup show --raw "$dir" | awk '$1 ~ /^0\/[0-9]+$/ && $1 != "0/5" { print substr($1, 3) }' | sort)
}

state_of() { # DIRECTORY: of files
	[ "$(cat "$1/workspace/tree/"* | cksum)" = "$SUM" ] || fail "the files of $1 are not whole"
	cat "$1/etc/state" "$1/workspace/state" | uniq
}

# Every checkpoint of dev has what was in it when it was made: its label. (The one that was cut has none yet.)
all_whole() {
	local dir
	for dir in "$MNT"/dev/checkpoints/*/; do
		[ -d "$dir" ] && [ "${dir%/cut/}" = "$dir" ] || continue
		check_eq "$(state_of "$dir/files")" "$(field "$dir/info" label.state)" "$dir"
	done
}

# ---- what is cut ----

set_state() { # N
	run dev "echo $1 >/etc/state; echo $1 >state"
}

take() { # NAME STATE
	mkdir "$MNT/dev/checkpoints/$1"
	put "$MNT/dev/checkpoints/$1/ctl" "set label.state=$2"
}

before_take() { set_state 2; }
do_take() { mkdir "$MNT/dev/checkpoints/cut"; }
after_take() { # DONE
	if [ -d "$MNT/dev/checkpoints/cut" ]; then
		check_eq "$(state_of "$MNT/dev/checkpoints/cut/files")" 2
		rmdir "$MNT/dev/checkpoints/cut"
	else
		check_eq "$1" no 'mkdir returned, the checkpoint is there'
	fi
	take cut 2 # its name is free
	rmdir "$MNT/dev/checkpoints/cut"
}

# One that its files came from and that was deleted since is let go then.
before_restore() {
	set_state 3
	take old 3
	put "$MNT/dev/ctl" 'restore old'
	rmdir "$MNT/dev/checkpoints/old"
}
do_restore() { put "$MNT/dev/ctl" 'restore base'; }
after_restore() {
	local now
	now=$(state_of "$MNT/dev/files")
	[ "$now" = 1 ] || { [ "$now" = 3 ] && [ "$1" = no ]; } || fail "after a restore (returned: $1) there is '$now'"
	put "$MNT/dev/ctl" 'restore base'
	check_eq "$(state_of "$MNT/dev/files")" 1
}

before_fork() { set_state 4; }
do_fork() { put "$MNT/dev/ctl" 'fork f1 f2'; }
after_fork() {
	local name
	if [ -d "$MNT/f1" ] || [ -d "$MNT/f2" ]; then
		for name in f1 f2; do
			check_eq "$(run "$name" 'cat /etc/state; hostname')" $'4\n'"$name"
			check_eq "$(state_of "$MNT/$name/files")" 4
		done
		rmdir "$MNT/f1" "$MNT/f2"
	else
		check_eq "$1" no 'fork returned, the children are there'
	fi
	put "$MNT/dev/ctl" 'fork f1 f2'
	rmdir "$MNT/f1" "$MNT/f2"
}

before_delete() {
	set_state 5
	take old 5
}
do_delete() { rmdir "$MNT/dev/checkpoints/old"; }
after_delete() {
	[ ! -d "$MNT/dev/checkpoints/old" ] || check_eq "$1" no 'rmdir returned, the checkpoint is gone'
	if [ -d "$MNT/dev/checkpoints/old" ]; then
		all_whole
		rmdir "$MNT/dev/checkpoints/old"
	fi
}

before_rename() { before_delete; }
do_rename() { mv "$MNT/dev/checkpoints/old" "$MNT/dev/checkpoints/new"; }
after_rename() {
	local dir=$MNT/dev/checkpoints
	[ -d "$dir/new" ] || check_eq "$1" no 'mv returned, the new name is there'
	{ [ -d "$dir/old" ] && [ ! -d "$dir/new" ]; } || { [ -d "$dir/new" ] && [ ! -d "$dir/old" ]; } ||
		fail 'of the two names not one is there'
	all_whole
	if [ -d "$dir/old" ]; then rmdir "$dir/old"; else rmdir "$dir/new"; fi
}

before_reset() {
	set_state 6
	put "$MNT/dev/files/srv/mine" mine
}
do_reset() { put "$MNT/dev/ctl" reset; }
after_reset() {
	if [ -e "$MNT/dev/files/srv/mine" ]; then
		check_eq "$1" no 'reset returned, the files are the template'"'"'s'
		check_eq "$(cat "$MNT/dev/files/etc/state")" 6
	else
		check_not test -e "$MNT/dev/files/etc/state"
	fi
	check_eq "$(cat "$MNT/dev/workspace/state")" 6
	put "$MNT/dev/ctl" reset
	check_not test -e "$MNT/dev/files/srv/mine"
}

# ---- the loop ----

settled() { # NAME: nothing is under way
	[ "$(field "$MNT/$1/status" doing)" = - ] && ! state_is "$1" creating
}

# Sandboxes that stood still or were stopped in the middle go on.
all_well() {
	local name names
	mapfile -t names < <(cut -d ' ' -f 1 "$MNT/list")
	for name in "${names[@]}"; do
		wait_for 60 settled "$name"
		put "$MNT/$name/ctl" start || fail "$(cat "$MNT/$name/status" "$MNT/$name/error")"
		check_eq "$(run "$name" 'echo well')" well
	done
}

cut_short() { # VICTIM OPERATION MICROSECONDS: kills it so long after its beginning
	local pid returned=yes
	"before_$2"
	("do_$2") 2>/dev/null &
	pid=$!
	sleep "$(printf '%d.%06d' $(($3 / 1000000)) $(($3 % 1000000)))"
	if [ "$1" = worker ]; then
		kill_worker
		wait "$pid" || returned=no
	else
		image_away
		kill_cubefs
		wait "$pid" || returned=no
		start_cubefs "${OPTIONS[@]}"
	fi
	wait_for 60 grep -q '^reachable yes' "$MNT/backends/local/status"
	all_well
	all_whole
	"after_$2" "$returned"
	wait_for 60 nothing_left
}

measure() { # OPERATION
	local begin
	"before_$1"
	begin=${EPOCHREALTIME/./}
	"do_$1"
	LENGTH[$1]=$((${EPOCHREALTIME/./} - begin))
	"after_$1" yes
}

whole_loop() {
	local operation victim moment at
	start_cubefs "${OPTIONS[@]}"
	sandbox dev
	run dev 'mkdir tree; for i in $(seq 300); do echo $i >tree/$i; done; cat tree/* | cksum' >"$WORK/sum"
	SUM=$(cat "$WORK/sum")
	set_state 1
	take base 1
	for operation in take restore fork delete rename reset; do
		measure "$operation"
		for victim in daemon worker; do
			for ((moment = 0; moment < MOMENTS; moment++)); do
				at=$((LENGTH[$operation] * (moment * 32768 + RANDOM) / (MOMENTS * 32768)))
				echo "$operation, its $victim killed after $at us of ${LENGTH[$operation]}"
				cut_short "$victim" "$operation" "$at"
			done
		done
		put "$MNT/dev/ctl" 'restore base'
	done
	rmdir "$MNT/dev"
	wait_for 60 eval '[ -z "$(entries "$(sets_dir)")" ]'
	if [ -e "$STATE/backends/local/store.btrfs" ]; then
		btrfs subvolume sync "$(sets_dir)"
		kill_cubefs
		start_cubefs "${OPTIONS[@]}"
		wait_for 60 eval '[ -z "$(accounts_left)" ]'
		image_away
	fi
	stop_cubefs
}

# Where files are copied it stands still for long: what is killed then leaves nobody standing. cp(1) is our own, slow while
# there is a file that says so.
stands_still() {
	local pid
	mkdir "$WORK/bin"
	printf '#!/bin/sh\n[ ! -e %s/slow ] || { : >%s/began; exec sleep 1000; }\nexec /bin/cp "$@"\n' "$WORK" "$WORK" >"$WORK/bin/cp"
	chmod +x "$WORK/bin/cp"
	PATH=$WORK/bin:$PATH start_cubefs "${OPTIONS[@]}"
	sandbox dev
	: >"$WORK/slow"
	(mkdir "$MNT/dev/checkpoints/cut") 2>/dev/null &
	pid=$!
	wait_for 60 test -e "$WORK/began"
	kill_cubefs
	wait "$pid" || true
	rm "$WORK/slow"
	start_cubefs "${OPTIONS[@]}"
	put "$MNT/dev/ctl" 'wait running 60'
	check_eq "$(grep -c '"paused"' "$MNT/events" || true)" 0 'events of a pause'
	check_eq "$(run dev 'echo well')" well
	check_not test -e "$MNT/dev/checkpoints/cut"
	rmdir "$MNT/dev"
	stop_cubefs
}

on_exit image_away
OPTIONS=()
whole_loop
OPTIONS=(--config "$WORK/conf")
printf '[backend local]\nkind = local\nstore = copies\n' >"$WORK/conf"
if [ "$(cat "$STATE/backends/local/store")" != copies ]; then
	STATE=$WORK/copies
	whole_loop
fi
stands_still
