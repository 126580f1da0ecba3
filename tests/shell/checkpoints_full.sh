#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that is full in the middle of a checkpoint, a restore or a fork: each is refused with a sentence and leaves nothing
# half made, what runs goes on, and with room again they all work.
. "$(dirname "$0")/lib.sh"
require_root
require mkfs.ext4
allow_log 'No space left on device'
disk_away() { ! is_mounted "$STATE" || umount -l "$STATE"; }
on_exit disk_away

begin() { # SIZE LINE: on an empty disk of that size; the line is for the backend
	truncate -s "$1" "$WORK/disk"
	mkfs.ext4 -q -F -m 0 "$WORK/disk"
	mkdir -p "$STATE"
	mount -o loop "$WORK/disk" "$STATE" 2>"$WORK/why" || skip "no loop devices: $(cat "$WORK/why")"
	printf '[daemon]\ndisk_percent = 0\ndisk_reserve = 0\n[backend local]\nkind = local\n%s\n' "$2" >"$WORK/conf"
	start_cubefs --config "$WORK/conf"
	wait_for 60 grep -q '^reachable yes' "$MNT/backends/local/status"
	cd "$MNT" || return
	sandbox dev
	sandbox other
	run dev 'head -c 20000000 /dev/urandom >/srv/big; echo one >/srv/state; echo one >/workspace/state'
	mkdir dev/checkpoints/a
	run dev 'echo two >/srv/state; echo two >/workspace/state'
	mkdir dev/jobs/long
	put dev/jobs/long/cmd 'while :; do echo x; sleep 0.05; done'
	wait_for 20 test -s dev/jobs/long/output
}

end() {
	cd /
	rmdir "$MNT/dev" "$MNT/other"
	stop_cubefs
	wait_for 20 umount "$STATE"
	rm "$WORK/disk"
}

take() { # BYTES: others take the disk, but for so many
	local left
	sync -f "$STATE"
	left=$(($(stat -f -c '%a * %S' "$STATE")))
	head -c $((left - $1)) /dev/zero >"$STATE/others" 2>"$WORK/head" || true
	sync -f "$STATE"
}

made() { # what there is of sandboxes and checkpoints, by their names and at the backend
	ls dev/checkpoints
	cut -d ' ' -f 1 list | sort
	(cd "$STATE/backends/local" && find checkpoints layers cubes -mindepth 1 -maxdepth 1 | sort)
}

goes_on() {
	local size
	check_eq "$(field dev/status state)" running
	check_eq "$(field dev/status doing)" -
	check_eq "$(field dev/jobs/long/status state)" running
	check_eq "$(cat dev/files/srv/state dev/workspace/state)" $'two\ntwo'
	size=$(stat -c %s dev/jobs/long/output)
	wait_for 20 eval "[ \"\$(stat -c %s dev/jobs/long/output)\" -gt $size ]"
}

refused() { # ERROR-FILE COMMAND...
	local before
	before=$(made)
	expect_error ENOSPC "$1" 'No space left on device' "${@:2}"
	check_eq "$(made)" "$before" "what there is after ${*:2}"
}

all_refused() {
	refused dev/error put dev/ctl 'checkpoint b'
	refused dev/error mkdir dev/checkpoints/b
	refused dev/error put dev/ctl 'restore a'
	refused error put ctl 'fork dev x y'
	refused error put ctl 'fork dev x y from=a'
	refused error put ctl 'create x from=dev/a'
}

all_work() {
	rm "$STATE/others"
	goes_on
	check_eq "$(run other 'echo well')" well
	put dev/ctl 'checkpoint b'
	put ctl 'fork dev x y from=a'
	check_eq "$(run x 'cat /srv/state state')" $'one\none'
	put dev/ctl 'restore a'
	check_eq "$(run dev 'cat /srv/state state')" $'one\none'
	put dev/ctl 'restore b'
	check_eq "$(run dev 'cat /srv/state state')" $'two\ntwo'
	check_eq "$(run y 'cat /srv/state')" one
	rmdir x y dev/checkpoints/b
}

# ---- copies: half of one fits ----
begin 300M 'store = copies'
for left in 10000000 0; do
	take "$left"
	all_refused
	goes_on
	[ "$left" -eq 0 ] || check_eq "$(run other 'echo well')" well
	all_work
	mkdir dev/jobs/again
	put dev/jobs/again/cmd 'true'
	check_eq "$(cat <>dev/jobs/again/exit)" 0
	rmdir dev/jobs/again
	rmdir dev/jobs/long
	mkdir dev/jobs/long
	put dev/jobs/long/cmd 'while :; do echo x; sleep 0.05; done'
	wait_for 20 test -s dev/jobs/long/output
done

# who fills it is paused, and stays so: nothing goes on behind a checkpoint that is refused
if grep -qE '^capabilities.* pause( |$)' backends/local/status; then
	take 40000000
	put ctl 'set disk_reserve=35M'
	mkdir dev/jobs/fill
	put dev/jobs/fill/cmd 'while :; do head -c 1000000 /dev/zero >>/workspace/fill; sleep 0.1; done'
	put dev/ctl 'wait paused 120'
	check_eq "$(field dev/status reason)" disk
	rm "$STATE/others"
	put ctl 'set disk_reserve=1024T'
	take 10000000
	refused dev/error put dev/ctl 'checkpoint b'
	check_eq "$(field dev/status state) $(field dev/status reason)" 'paused disk'
	rm "$STATE/others"
	put ctl 'set disk_reserve=0'
	put dev/ctl 'wait running 120'
	put dev/ctl 'checkpoint b'
	put dev/ctl 'restore a'
	check_eq "$(run dev 'cat /srv/state')" one
fi
end

# ---- snapshots need no room, but what is said of them does: the disk below the image is full ----
if btrfs --version >/dev/null 2>&1 && grep -qw btrfs /proc/filesystems; then
	begin 1G $'store = image\nstore_limit = 400M'
	take 0
	all_refused
	refused dev/error put dev/ctl reset
	goes_on
	all_work
	end
fi
