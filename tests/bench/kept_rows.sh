# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The rows of run.sh about states that are kept: checkpoints, restores, forks. A function each, as in rows.sh.
#
# In a store of snapshots the work is 1 GiB of changes in 10,000 files, written out.

KEPT_FILES=10000
KEPT_BYTES=107374 # of each: 1 GiB together
XFS=''            # a second daemon's state, on a file system that shares blocks

# ---- for all of them ----

took() { # COMMAND...: microseconds
	local begin=${EPOCHREALTIME/./}
	"$@" >/dev/null || return
	echo $((${EPOCHREALTIME/./} - begin))
}

middle() { # US...
	printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

fill() { # DIR FILES BYTES: files of bytes that nothing can share or squeeze
	mkdir -p "$1"
	head -c "$(($2 * $3))" /dev/urandom | split -a 4 -d -b "$3" - "$1/f"
}

fork_answers() { # PARENT NEW
	put "$MNT/$1/ctl" "fork $2" && put "$MNT/$2/exec" /bin/true && cat "$MNT/$2/exec"
}

# The sandbox `kept` with its files; it stays for the rows behind.
kept_up() {
	[ ! -d "$MNT/kept" ] || return 0
	make kept empty
	cp "$BUILD/tests/bench/bench-still" "$MNT/kept/workspace/still"
	fill "$MNT/kept/workspace/data" "$KEPT_FILES" "$KEPT_BYTES"
	put "$MNT/kept/exec" sync
}

# ---- snapshots ----

row_checkpoint() {
	local times=() i first last own
	kept_up
	first=$(took mkdir "$MNT/empty/checkpoints/1")
	for i in {1..20}; do
		put "$MNT/kept/workspace/note" "$i"
		times+=("$(took mkdir "$MNT/kept/checkpoints/$i")")
		last=${times[-1]}
	done
	own=$(middle "${times[@]}")
	remember checkpoint "$own"
	at_most_ms '1 GiB in 10,000 files: checkpoint, p50' "$own" 100000
	at_most_ms '  the twentieth' "$last" 100000
	line '  the first; of an empty sandbox' "$(ms "${times[0]}"); $(ms "$first")" '-' '-'
}

# The longest gap that a program inside sees, while WHAT is done.
still_gap() { # JOB WHAT...
	local job=$MNT/kept/jobs/$1 file=$MNT/kept/workspace/enough
	shift
	rm -f "$file"
	mkdir "$job"
	put "$job/cmd" 'echo up; ./still enough'
	until grep -q up "$job/output"; do sleep 0.05; done
	"$@"
	: >"$file"
	cat <>"$job/exit" >/dev/null
	awk 'NR == 2 { print int($1) }' "$job/output"
	rmdir "$job"
}

# Without a checkpoint: what the machine does to it anyway, in about the same time.
row_freeze() {
	local with=() without=() i
	kept_up
	for i in {1..9}; do
		without+=("$(still_gap "a$i" sleep 0.05)")
		with+=("$(still_gap "b$i" mkdir "$MNT/kept/checkpoints/still")")
		rmdir "$MNT/kept/checkpoints/still"
	done
	at_most_ms '  for so long its processes stand still, p50' "$(middle "${with[@]}")" 20000
	line '  and without a checkpoint; the longest with one' \
		"$(ms "$(middle "${without[@]}")"); $(ms "$(printf '%s\n' "${with[@]}" | sort -n | tail -n 1)")" '-' '-'
}

row_restore() {
	local times=() _
	kept_up
	[ -d "$MNT/kept/checkpoints/1" ] || mkdir "$MNT/kept/checkpoints/1"
	for _ in {1..10}; do times+=("$(took put "$MNT/kept/ctl" 'restore 1')"); done
	at_most_ms '1 GiB in 10,000 files: restore, p50' "$(middle "${times[@]}")" 100000
}

row_fork() {
	local times=() i own
	kept_up
	for i in {1..20}; do
		times+=("$(took fork_answers kept "k$i")")
	done
	own=$(middle "${times[@]}")
	remember fork "$own"
	at_most_ms '1 GiB in 10,000 files: fork to its first output, p50' "$own" 100000
	at_most_ms '  the twentieth' "${times[19]}" 100000
	unmake k{1..20}
	settled
}

# An image of a container with the same files, and the first output of one that is made of it.
docker_commits() {
	docker_here commit kept kept-image && docker_here run --rm --network none kept-image /bin/true
}

row_commit_docker() {
	local times=() _
	docker_up || { note '  docker commit and run' "$(tail -n 1 "$WORK/docker.log")"; return; }
	kept_up
	docker_here run -d --network none --name kept bench /bin/sleep 1000000 >/dev/null
	tar -C "$MNT/kept/workspace" -c data | docker_here cp - kept:/
	sync -f "$WORK/docker"
	for _ in 1 2 3; do times+=("$(took docker_commits)"); done
	docker_here rm -f kept >/dev/null
	if [ -n "${NOTED[checkpoint]-}" ] && [ -n "${NOTED[fork]-}" ]; then
		remember both $((NOTED[checkpoint] + NOTED[fork]))
	fi
	beside '  docker commit and run, to checkpoint and fork' "$(middle "${times[@]}")" both 10
}

row_forks() {
	local names=() begin us
	kept_up
	mapfile -t names < <(seq -f 'h%g' 100)
	begin=${EPOCHREALTIME/./}
	put "$MNT/kept/ctl" "fork ${names[*]}"
	"$BENCH" together "$MNT" 1 /bin/true "${names[@]}" >/dev/null
	us=$((${EPOCHREALTIME/./} - begin))
	at_most_ms '100 forks of one sandbox, until all have answered' "$us" 4000000
	unmake "${names[@]}"
	settled
}

inside_used() { # SANDBOX: KiB of what holds its files
	put "$MNT/$1/exec" 'sync; stat -f -c "%b %f %S" /workspace'
	awk '{ print ($1 - $2) * $3 / 1024 }' "$MNT/$1/exec"
}

row_twenty() {
	local before full after i
	make twenty
	settled
	before=$(inside_used twenty)
	fill "$MNT/twenty/workspace/data" 2000 104858
	full=$(inside_used twenty)
	for i in {1..20}; do mkdir "$MNT/twenty/checkpoints/$i"; done
	after=$(inside_used twenty)
	line '200 MB and twenty checkpoints of it, of its disk' \
		"$(awk -v a="$before" -v b="$full" -v c="$after" 'BEGIN { printf "%.2f x", (c - a) / (b - a) }')" 'less than 2 x' \
		"$(verdict $((after - before)) $((2 * (full - before))))"
	unmake twenty
}

# ---- reflinks ----

xfs_up() {
	[ -z "$XFS" ] || return 0
	command -v mkfs.xfs >/dev/null || return
	XFS=$WORK/xfs
	mkdir "$XFS" "$WORK/xfs-mnt"
	truncate -s 8G "$WORK/xfs.img"
	mkfs.xfs -q "$WORK/xfs.img" && mount -o loop "$WORK/xfs.img" "$XFS" && cubefs --state "$XFS/state" "$WORK/xfs-mnt"
}

xfs_down() {
	[ -n "$XFS" ] || return 0
	local MNT=$WORK/xfs-mnt WORK=$XFS
	mount_down
	umount "$XFS"
}

row_reflink() {
	local files=10000 times=() own i
	xfs_up || { note 'reflinks: checkpoint' 'xfs cannot be made (apt-get install xfsprogs)'; return; }
	local MNT=$WORK/xfs-mnt
	make many
	fill "$MNT/many/workspace/data" "$files" 4096
	put "$MNT/many/exec" sync
	for i in {1..5}; do times+=("$(took mkdir "$MNT/many/checkpoints/$i")"); done
	own=$(middle "${times[@]}")
	line "reflinks: checkpoint of $files files, a file" "$(awk -v us="$own" -v n="$files" 'BEGIN { printf "%.1f us", us / n }')" \
		'at most 150.0 us' "$(verdict "$own" $((150 * files)))"
	unmake many
}
