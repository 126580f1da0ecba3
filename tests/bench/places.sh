# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For files.sh: the places in which the same work is done, and its table.

SSHD=''
# shellcheck disable=SC2034 # files.sh ends with it
FAILED=0
declare -A AT    # name: the directory
declare -A WHY   # why one is not there
declare -A WHAT LIMIT PROGRAM COPIES # of the rows

# ---- the places ----

# The same overlay that the sandbox has, without anything before it; for who cannot mount it, the disk.
place_native() {
	local mark=.native.$$ dir
	mkdir -p "$WORK/native"
	if [ "$(id -u)" -ne 0 ]; then
		AT[native]=$WORK/native
		return
	fi
	: >"$MNT/bench/files/$mark"
	for dir in /proc/[0-9]*/root; do
		[ -e "$dir/$mark" ] || continue
		rm "$dir/$mark"
		dir=${dir%/root}
		python3 "$HERE/lend.py" "${dir#/proc/}" /workspace "$WORK/native" && AT[native]=$WORK/native
		return
	done
	return 1
}

place_cubefs() {
	AT[cubefs]=$MNT/bench/files/workspace
}

place_bindfs() {
	local options=()
	[ "$(id -u)" -eq 0 ] || options=(--no-allow-other)
	mkdir "$WORK/bindfs"
	bindfs ${options[@]+"${options[@]}"} "${AT[native]}" "$WORK/bindfs" 2>"$WORK/bindfs.log" || {
		WHY[bindfs]=$(tail -n 1 "$WORK/bindfs.log")
		return
	}
	AT[bindfs]=$WORK/bindfs
}

# A server of our own: keys that are thrown away, on a port that is free.
place_sshfs() {
	local port=$((20000 + RANDOM % 20000))
	mkdir -m 700 "$WORK/ssh" "$WORK/sshfs"
	[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$WORK/ssh/host" && ssh-keygen -q -t ed25519 -N '' -f "$WORK/ssh/id"
	cp "$WORK/ssh/id.pub" "$WORK/ssh/authorized"
	/usr/sbin/sshd -D -f /dev/null -p "$port" -h "$WORK/ssh/host" -o ListenAddress=127.0.0.1 -o PidFile=none \
		-o StrictModes=no -o AuthorizedKeysFile="$WORK/ssh/authorized" -o PermitRootLogin=prohibit-password \
		-o Subsystem='sftp internal-sftp' -o UsePAM=no 2>"$WORK/sshd.log" &
	SSHD=$!
	for _ in $(seq 50); do
		sshfs -p "$port" -o IdentityFile="$WORK/ssh/id" -o StrictHostKeyChecking=no \
			-o UserKnownHostsFile=/dev/null "$(id -un)@127.0.0.1:${AT[native]}" "$WORK/sshfs" 2>"$WORK/sshfs.log" && {
			AT[sshfs]=$WORK/sshfs
			return
		}
		sleep 0.1
	done
	WHY[sshfs]=$(tail -n 1 "$WORK/sshfs.log")
}

# An engine's container, for the rows that copy.
place_docker() {
	if [ "$(id -u)" -ne 0 ]; then
		WHY[docker]='it needs root'
		return
	fi
	docker_up || {
		WHY[docker]=$(tail -n 1 "$WORK/docker.log")
		return
	}
	AT[docker]=$WORK/docker-copies
}

places_up() {
	local place
	make bench
	place_native || return
	for place in "${PLACES[@]}"; do
		[ "$place" = native ] || "place_$place"
		if [ -z "${AT[$place]-}" ]; then note "$place" "${WHY[$place]-}"; fi
	done
}

places_down() {
	trap '' INT TERM
	cd /
	for place in bindfs sshfs native; do
		if ! mountpoint -q "$WORK/$place"; then continue; fi
		if [ "$(id -u)" -eq 0 ]; then umount -l "$WORK/$place"; else fusermount3 -uz "$WORK/$place"; fi
	done
	[ -z "$SSHD" ] || kill "$SSHD"
}

# ---- the table ----

files_head() {
	printf '%-28s %10s %18s %18s %18s %18s   %s\n' row native cubefs bindfs sshfs 'docker cp' \
		'target: cubefs beside native, beside others'
}

median() { # FIGURES a line
	sort -n | awk '{ v[NR] = $1 } END { if (NR > 0) print v[int((NR + 1) / 2)] }'
}

cell() { # US NATIVE-US CUBEFS-US PLACE
	[ ! -e "$WORK/row/$4.failed" ] || { echo failed; return; }
	awk -v us="$1" -v n="$2" -v c="$3" -v place="$4" 'BEGIN {
		if (us == "") { printf "%s", "-"; exit }
		if (place == "native" || n == "") printf "%.1f", us / 1000
		else if (place == "cubefs") printf "%.1f (%.2f)", us / 1000, us / n
		else printf "%.1f (%.1f x)", us / 1000, c == "" ? 0 : us / c
	}'
}

# WHAT LIMIT (a multiple of native's time, or -); the medians are in $WORK/row/PLACE
files_line() {
	local place own native cells=() others='' limit=$2
	native=$(median <"$WORK/row/native") own=$(median <"$WORK/row/cubefs")
	for place in native cubefs bindfs sshfs docker; do
		cells+=("$(cell "$(median <"$WORK/row/$place")" "$native" "$own" "$place")")
	done
	for place in bindfs sshfs; do
		others+=$(awk -v o="$(median <"$WORK/row/$place")" -v c="$own" -v p="$place" 'BEGIN {
			if (o != "" && c != "") printf "  %s %s", p, (o >= 2 * c) ? "met" : "MISSED" }')
	done
	[ "$limit" = - ] || [ -z "$own" ] || [ -z "$native" ] ||
		limit="$limit x $(verdict "$own" "$(awk -v n="$native" -v l="$limit" 'BEGIN { print n * l }')")"
	printf '%-28s %10s %18s %18s %18s %18s   %s%s\n' "$1" "${cells[@]}" "$limit" "$others"
}

# A row: `files_ROW` in each place, in turn, so that a busy moment meets all of them. A place where it failed has no
# figure: the time of a failure is none.
row_run() { # ROW
	local row=$1 program=${PROGRAM[$1]-} place i
	if [ -n "$program" ] && ! command -v "$program" >/dev/null; then
		note "${WHAT[$row]}" "$program is not installed"
		return
	fi
	rm -rf "$WORK/row"
	mkdir "$WORK/row"
	for place in native cubefs bindfs sshfs docker; do : >"$WORK/row/$place"; done
	for ((i = 0; i < RUNS; i++)); do
		for place in "${PLACES[@]}"; do
			if [ -z "${AT[$place]-}" ] || [ -e "$WORK/row/$place.failed" ]; then continue; fi
			if [ "$place" = docker ] && [ -z "${COPIES[$row]-}" ]; then continue; fi
			row_once "$row" "$place" || row_failed "$row" "$place"
			cd /
		done
	done
	files_line "${WHAT[$row]}" "${LIMIT[$row]}"
}

row_once() { # ROW PLACE
	mkdir -p "${AT[$2]}/$2" && cd "${AT[$2]}/$2" &&
		"files_$1" "$2" >"$WORK/row/took" 2>"$WORK/row/log" && cat "$WORK/row/took" >>"$WORK/row/$2"
}

row_failed() { # ROW PLACE
	# shellcheck disable=SC2034
	FAILED=1
	: >"$WORK/row/$2"
	: >"$WORK/row/$2.failed"
	echo "$SELF: $1 in $2 failed: $(tail -n 1 "$WORK/row/log")" >&2
}

timed() { # COMMAND...: microseconds
	local begin=${EPOCHREALTIME/./}
	"$@" >/dev/null || return
	echo $((${EPOCHREALTIME/./} - begin))
}

# A second time: what is warm.
warm() {
	"$@" >/dev/null && timed "$@"
}
