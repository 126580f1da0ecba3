#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures containers as sandboxes beside the engines' own commands, in one run, as root: with Docker and with Podman, each
# an engine of its own (tests/engine.sh). It builds what it needs, and takes away all that it made, whatever happens.
#
#     tests/bench/docker.sh [ENGINE ...]      docker, podman; both unless named
#
# CUBEFS_BUILD_DIR: where to build (build/bench); CUBEFS_BENCH_COUNT: commands for each p50 (200), a tenth of them by the
# engine's own command; CUBEFS_BENCH_MANY: containers that are followed (50). Figures of a busy machine mean little: the
# load stands above the table.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
BUILD=${CUBEFS_BUILD_DIR:-$ROOT/build/bench}
COUNT=${CUBEFS_BENCH_COUNT:-200}
MANY=${CUBEFS_BENCH_MANY:-50}
BENCH=$BUILD/tests/bench/bench-bench
ENGINE=$ROOT/tests/engine.sh
ROWS=(docker podman)
UP='' # the engine that is there

. "$ROOT/cmake/debian.sh"
. "$HERE/lib.sh"
. "$HERE/others.sh"

# ---- an engine, and cubefs on it ----

engine_up() { # KIND
	UP=$1
	"$ENGINE" up "$1" "$WORK/engine" >"$WORK/engine.log" 2>&1 || return
	printf '[backend docker]\nurl = unix://%s/engine/sock\ntemplate = cubefs-test\n' "$WORK" >"$WORK/conf"
	cubefs --config "$WORK/conf" --state "$WORK/state" "$MNT"
}

engine_down() {
	local names=()
	[ -n "$UP" ] || return 0
	if mountpoint -q "$MNT"; then
		mapfile -t names < <(awk '{ print $1 }' "$MNT/list")
		[ "${#names[@]}" -eq 0 ] || unmake "${names[@]}"
		cubefs umount "$MNT"
	fi
	"$ENGINE" down "$UP" "$WORK/engine" >>"$WORK/engine.log" 2>&1
	UP=
}

# The engine's own command.
own() { # WORD...
	case $UP in
	docker) docker -H "unix://$WORK/engine/sock" "$@" ;;
	podman) podman --remote --url "unix://$WORK/engine/sock" "$@" ;;
	esac
}

own_bench() { # WORD...: timed
	local words=(docker -H "unix://$WORK/engine/sock")
	[ "$UP" = docker ] || words=(podman --remote --url "unix://$WORK/engine/sock")
	"$BENCH" spawn $((COUNT / 10)) "${words[@]}" "$@" | p50
}

api() { # METHOD PATH
	curl -sSf --unix-socket "$WORK/engine/sock" -X "$1" "http://engine/v1.41$2"
}

microseconds() { # COMMAND...: how long it took
	local begin=${EPOCHREALTIME/./}
	"$@" >"$WORK/out" 2>&1
	echo $((${EPOCHREALTIME/./} - begin))
}

median() {
	sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

# ---- rows ----

docker_exec() {
	local own
	make one
	"$BENCH" exec "$MNT/one" 20 /bin/true >/dev/null
	own=$("$BENCH" exec "$MNT/one" "$COUNT" /bin/true | p50)
	remember exec "$own"
	line "$UP: echo /bin/true > exec; cat exec, p50" "$(ms "$own")" '-' '-'
	beside "  $UP exec" "$(own_bench exec "cubefs-$(field "$MNT/one/status" id)" /bin/true)" exec 20
}

# By turns, so that both have the same machine.
docker_create() {
	local i mine=() theirs=() a b
	for i in $(seq 10); do
		theirs+=("$(microseconds own run -d --network none --name "own$i" cubefs-test /bin/sleep 1000)")
		mine+=("$(microseconds put "$MNT/ctl" "create made$i")")
	done
	for i in $(seq 10); do
		own rm -f "own$i" >/dev/null 2>&1
		unmake "made$i"
	done
	a=$(printf '%s\n' "${mine[@]}" | median)
	b=$(printf '%s\n' "${theirs[@]}" | median)
	line "$UP: create, until it can be used, median" "$(ms "$a")" "at most 1.15 x $UP run -d" \
		"$(verdict "$a" "$(awk -v b="$b" 'BEGIN { print 1.15 * b }')")"
	line "  $UP run -d" "$(ms "$b")" '-' '-'
}

docker_files() {
	local id a b i
	id=cubefs-$(field "$MNT/one/status" id)
	put "$MNT/one/exec" 'dd if=/dev/urandom of=/root/f bs=1024 count=64 2>/dev/null'
	a=$(for i in $(seq 20); do microseconds cp "$MNT/one/files/root/f" "$WORK/copy"; done | median)
	cmp -s "$WORK/copy" "$MNT/one/files/root/f" || note "$UP: a file" 'the copy differs'
	remember files "$a"
	line "$UP: cp files/root/f, 64 KiB, median" "$(ms "$a")" '-' '-'
	b=$(for i in $(seq 10); do microseconds own cp "$id:/root/f" "$WORK/copy"; done | median)
	beside "  $UP cp" "$b" files 10
}

# Each of them is paused by somebody else, and seen so.
seen_paused() { # NAME...
	local name
	for name; do
		until [ "$(field "$MNT/$name/status" state)" = paused ]; do sleep 0.01; done
	done
}

docker_many() {
	local names=() before after name begin told
	mapfile -t names < <(seq -f 'm%g' "$MANY")
	make "${names[@]}"
	line "$UP: cat list of $MANY, median of 20" \
		"$(ms "$(for name in $(seq 20); do microseconds cat "$MNT/list"; done | median)")" '-' '-'
	before=$(grep -c "$WORK/engine/sock" /proc/net/unix)
	for name in "${names[@]}"; do
		api POST "/containers/cubefs-$(field "$MNT/$name/status" id)/pause"
	done
	begin=${EPOCHREALTIME/./}
	seen_paused "${names[@]}"
	told=$((${EPOCHREALTIME/./} - begin))
	after=$(grep -c "$WORK/engine/sock" /proc/net/unix)
	line "$UP: $MANY were paused by others: seen after the last" "$(ms "$told")" '-' '-'
	line "  connections to the engine, before and after" "$before, $after" 'not one for each' \
		"$(verdict "$after" $((MANY / 2)))"
	unmake "${names[@]}"
}

measure() { # ENGINE
	engine_up "$1" || {
		note "$1" "$(tail -n 1 "$WORK/engine.log")"
		engine_down
		return
	}
	docker_exec
	docker_files
	unmake one
	docker_create
	docker_many
	engine_down
}

bench_docker() { measure docker; }
bench_podman() { measure podman; }

root_only 'engines are started by root'
[ "$#" -gt 0 ] || set -- "${ROWS[@]}"
known_rows bench "$@"
debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" "${DEBIAN_BENCH[@]}" >&2 || exit 1
workplace
trap 'engine_down; cleanup' EXIT
build || exit 1

echo "# $(machine)"
line what measured target ''
for row; do
	"bench_$row"
done
