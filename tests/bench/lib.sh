# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For run.sh and files.sh and their rows: what is asked for, building, the mount, the table, and cleaning up whatever
# happened. HERE, ROOT and BUILD are set by them.

SELF=tests/bench/$(basename "$0")
WORK='' MNT='' DAEMON=''
declare -A NOTED # what earlier rows measured, for the targets of later ones

# ---- the table ----

line() { # WHAT VALUE TARGET VERDICT
	printf '%-56s %12s   %-34s %s\n' "$@"
}

note() { # WHAT REASON: a row without a figure
	printf '%-56s %12s   %s\n' "$1" '-' "not measured: $2"
}

verdict() { # VALUE LIMIT
	awk -v a="$1" -v b="$2" 'BEGIN { print (a <= b ? "met" : "MISSED") }'
}

ms() { # MICROSECONDS
	awk -v us="$1" 'BEGIN { printf "%.2f ms", us / 1000 }'
}

at_most_ms() { # WHAT MICROSECONDS LIMIT [WHY]
	line "$1" "$(ms "$2")" "at most $(ms "$3")${4:+ ($4)}" "$(verdict "$2" "$3")"
}

at_most_mib() { # WHAT KIB LIMIT-MIB
	line "$1" "$(awk -v k="$2" 'BEGIN { printf "%.2f MiB", k / 1024 }')" "at most $3 MiB" \
		"$(verdict "$2" $(($3 * 1024)))"
}

# What a user would pick instead, beside what cubefs took: that is to be so many times faster.
beside() { # WHAT MICROSECONDS KEY TIMES
	local own=${NOTED[$3]-}
	if [ -z "$own" ]; then
		line "$1" "$(ms "$2")" '-' '-'
		return
	fi
	line "$1" "$(ms "$2")" "cubefs $4 x faster ($(awk -v a="$2" -v b="$own" 'BEGIN { printf "%.1f x", a / b }'))" \
		"$(verdict "$(awk -v b="$own" -v n="$4" 'BEGIN { print b * n }')" "$2")"
}

remember() { # KEY MICROSECONDS
	NOTED["$1"]=$2
}

p50() { cut -d ' ' -f 1; }
longest() { cut -d ' ' -f 3; }

# ---- sandboxes ----

put() { # FILE LINE
	printf '%s\n' "$2" >"$1"
}

make() { # NAME...: all at once, until they run
	local name
	for name; do mkdir "$MNT/$name"; done
	for name; do put "$MNT/$name/ctl" 'wait running 300'; done
}

unmake() { # NAME...: returns when they are gone
	printf 'destroy %s\n' "$*" >"$MNT/ctl"
}

field() { # FILE KEY
	awk -v key="$2" '$1 == key { print $2; exit }' "$1"
}

settled() { # until what was removed is gone
	while compgen -G "$WORK/state/cubes/*.removed" >/dev/null; do sleep 0.1; done
}

daemon_pids() {
	pgrep -f "^cubefs --state $WORK/state "
}

daemon_kib() { # resident memory of all its processes
	local pid sum=0 kib
	for pid in $(daemon_pids); do
		kib=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
		sum=$((sum + ${kib:-0}))
	done
	echo "$sum"
}

group_of() { # NAME: its directory in the tree that counts memory
	local id
	id=$(field "$MNT/$1/status" id)
	find /sys/fs/cgroup/memory /sys/fs/cgroup -maxdepth 3 -type d -path "*/cubefs/$id" -print -quit 2>/dev/null
}

# ---- the beginning and the end ----

root_only() { # WHY
	[ "$(id -u)" -ne 0 ] || return 0
	echo "$SELF: $1" >&2
	exit 2
}

known_rows() { # PREFIX ROW...: of their functions
	local prefix=$1 row
	shift
	for row; do
		declare -F "${prefix}_$row" >/dev/null && continue
		echo "$SELF: no row '$row'; there are: ${ROWS[*]}" >&2
		exit 2
	done
}

workplace() { # and that it is taken away
	WORK=$(mktemp -d /tmp/cubefs-bench-XXXXXX) || exit 1
	MNT=$WORK/mnt
	PATH=$BUILD/fs:$BUILD:$PATH
	trap cleanup EXIT
	trap 'exit 130' INT TERM
	mkdir "$WORK/state"
}

machine() { # for the head of a table
	echo "$(uname -sr), $(nproc) processors, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
}

build() {
	if [ -x "$BUILD/fs/cubefs" ] && [ ! -w "$BUILD" ]; then return; fi # another user has built it
	cmake -S "$ROOT" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUBEFS_WERROR=OFF \
		-DCUBEFS_TESTS=OFF >"$WORK/build.log" 2>&1 &&
		cmake --build "$BUILD" --parallel --target cubefs cube-init bench-bench bench-files bench-floor bench-still bench-p9 >>"$WORK/build.log" 2>&1 &&
		return
	tail -n 20 "$WORK/build.log" >&2
	echo "$SELF: it does not build" >&2
	return 1
}

mount_up() {
	DAEMON=yes
	cubefs --state "$WORK/state" --9p "unix:$WORK/9p" "$MNT"
}

# A daemon that was lost is started again: only it can end what it left.
mount_down() {
	local names=()
	[ -n "$DAEMON" ] || return 0
	mountpoint -q "$MNT" || mount_up || return
	mapfile -t names < <(awk '{ print $1 }' "$MNT/list")
	[ "${#names[@]}" -eq 0 ] || unmake "${names[@]}"
	cubefs umount "$MNT"
}

cleanup() {
	trap '' INT TERM
	set +e
	others_down
	mount_down
	rm -rf --one-file-system "$WORK"
}
