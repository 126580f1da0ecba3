#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures cubefs beside what a user would pick instead, in one run, and prints a table of ratios.
#
#     tests/bench/run.sh [COUNT]     (as root: crun and dockerd need it; CUBEFS_BUILD_DIR: a release build)
#
# Every row is one p50 in microseconds, and how many times as long it takes as cubefs.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
BUILD=${CUBEFS_BUILD_DIR:-$HERE/../../build/release}
COUNT=${1:-200}
WORK=$(mktemp -d /tmp/cubefs-bench-XXXXXX)
MNT=$WORK/mnt
BENCH=$BUILD/tests/bench/bench-bench
FLOOR=$BUILD/tests/bench/bench-floor
PATH=$BUILD/fs:$BUILD:$PATH
DOCKERD=

cleanup() {
	set +e
	if mountpoint -q "$MNT"; then
		rm -rf "${MNT:?}"/* 2>/dev/null
		sleep 1
		cubefs umount "$MNT"
	fi
	crun_alone crun --root "$WORK/crun" delete -f bench >/dev/null 2>&1
	if [ -n "$DOCKERD" ]; then
		docker_here rm -f bench >/dev/null 2>&1
		kill "$DOCKERD"
		wait "$DOCKERD" 2>/dev/null
	fi
	umount -l "$WORK"/docker/* 2>/dev/null
	rm -rf "$WORK"
}
trap cleanup EXIT

# crun refuses a hybrid layout of control groups: without `unified` it is content.
crun_alone() {
	unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh "$@"
}

docker_here() {
	docker -H "unix://$WORK/docker.sock" "$@"
}

row() { # WHAT P50 CUBEFS-P50
	awk -v what="$1" -v a="$2" -v b="$3" 'BEGIN { printf "%-44s %12.1f us %9.2f x\n", what, a, a / b }'
}

p50() { cut -d ' ' -f 1; }

mkdir "$WORK/state"
cubefs --state "$WORK/state" "$MNT"
mkdir "$MNT/bench"
echo 'wait running 30' >"$MNT/bench/ctl"
cp "$FLOOR" "$MNT/bench/workspace/floor"

echo "# a command: /bin/true"
"$BENCH" exec "$MNT/bench" 20 /bin/true >/dev/null
EXEC=$("$BENCH" exec "$MNT/bench" "$COUNT" /bin/true | p50)
echo "/workspace/floor $COUNT /bin/true" >"$MNT/bench/exec"
ROW=$(p50 <"$MNT/bench/exec")
row 'cubefs: echo > exec; cat exec' "$EXEC" "$EXEC"
row 'floor: vfork + exec in the same namespaces' "$ROW" "$EXEC"
awk -v e="$EXEC" -v f="$ROW" 'BEGIN { printf "# target: 2 x floor + 500 us = %.1f us: %s\n", 2 * f + 500, e <= 2 * f + 500 ? "met" : "missed" }'

# A container of the host's own programs, as cubefs has them.
mkdir -p "$WORK/bundle/rootfs"
ROOTFS=$WORK/bundle/rootfs
for dir in bin sbin lib lib64 usr etc; do
	if [ -L "/$dir" ]; then cp -P "/$dir" "$ROOTFS/"; else mkdir -p "$ROOTFS/$dir"; fi
done
mkdir -p "$ROOTFS"/{proc,sys,dev,tmp}
mount --bind -o ro /usr "$ROOTFS/usr"
trap 'umount -l "$ROOTFS/usr" 2>/dev/null; cleanup' EXIT
(cd "$WORK/bundle" && crun spec && python3 - <<'E2'
import json
c = json.load(open('config.json'))
c['process']['terminal'] = False
c['process']['args'] = ['sleep', '1000000']
c['root']['readonly'] = False
json.dump(c, open('config.json', 'w'))
E2
)
if crun_alone crun --root "$WORK/crun" --cgroup-manager=disabled run --detach --bundle "$WORK/bundle" bench </dev/null >"$WORK/crun.log" 2>&1; then
	CRUN=$(crun_alone "$BENCH" spawn "$COUNT" crun --root "$WORK/crun" --cgroup-manager=disabled exec bench /bin/true | p50)
	row 'crun exec' "$CRUN" "$EXEC"
else
	echo "# crun exec: not measured: $(tail -n 1 "$WORK/crun.log")"
fi

# the engine, where it can be started
if command -v dockerd >/dev/null; then
	dockerd --iptables=false --bridge=none -H "unix://$WORK/docker.sock" --data-root "$WORK/docker" \
		--exec-root "$WORK/docker-run" -p "$WORK/docker.pid" >"$WORK/dockerd.log" 2>&1 &
	DOCKERD=$!
	for _ in $(seq 100); do docker_here info >/dev/null 2>&1 && break; sleep 0.2; done
	if tar -C / -c --exclude='usr/share/doc' bin sbin lib lib64 usr/bin usr/lib/x86_64-linux-gnu/libc.so.6 \
		usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 usr/lib64 2>/dev/null | docker_here import - bench >/dev/null 2>&1 &&
		docker_here run -d --network none --name bench bench sleep 1000000 >/dev/null 2>"$WORK/docker.log"; then
		DOCKER=$("$BENCH" spawn 20 docker -H "unix://$WORK/docker.sock" exec bench /bin/true | p50)
		row 'docker exec' "$DOCKER" "$EXEC"
	else
		echo "# docker exec: not measured: $(tail -n 1 "$WORK/docker.log" "$WORK/dockerd.log" 2>/dev/null | tail -n 1)"
	fi
else
	echo '# docker exec: not measured: dockerd is not installed'
fi

echo
echo '# a sandbox: to the first output of /bin/true'
FIRST=$("$BENCH" first "$MNT" 20 /bin/true | p50)
row 'cubefs: mkdir; echo > exec; cat exec' "$FIRST" "$FIRST"
sed -i 's#"sleep", "1000000"#"/bin/true"#' "$WORK/bundle/config.json"
RUN=$(crun_alone "$BENCH" spawn 20 crun --root "$WORK/crun" --cgroup-manager=disabled run --bundle "$WORK/bundle" once </dev/null | p50) &&
	row 'crun run' "$RUN" "$FIRST" || echo '# crun run: not measured'
if [ -n "$DOCKERD" ]; then
	DRUN=$("$BENCH" spawn 5 docker -H "unix://$WORK/docker.sock" run --rm --network none bench /bin/true | p50) &&
		row 'docker run' "$DRUN" "$FIRST" || echo '# docker run: not measured'
fi

echo
echo '# many'
"$BENCH" create "$MNT" 100 /bin/true 2>&1 | sed 's/^all/100 sandboxes at once: all/; t; s/^/100 sandboxes at once (us, p50 p90 max): /'
names=()
for i in $(seq 50); do names+=("p$i"); mkdir "$MNT/p$i"; done
for name in "${names[@]}"; do echo 'wait running 60' >"$MNT/$name/ctl"; done
"$BENCH" together "$MNT" 4 /bin/true "${names[@]}" | sed 's/^/200 commands over 50 sandboxes (us, p50 p90 max): /'
for name in "${names[@]}"; do rmdir "$MNT/$name"; done

echo
echo '# size'
daemon_kib() {
	local pid sum=0
	for pid in $(pgrep -f "cubefs --state $WORK/state"); do
		sum=$((sum + $(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")))
	done
	echo "$sum"
}
many=${CUBEFS_BENCH_MANY:-1000}
before=$(free -k | awk '/^Mem/ { print $7 }')
for i in $(seq "$many"); do mkdir "$MNT/n$i"; done
for i in $(seq "$many"); do echo 'wait running 120' >"$MNT/n$i/ctl"; done
after=$(free -k | awk '/^Mem/ { print $7 }')
echo "$many idle sandboxes: $(((before - after) / many)) KiB of the machine's memory each, kernel included"
agents=$(pgrep -f cube-init | while read -r pid; do awk '/^Pss:/ { s += $2 } END { print s + 0 }' "/proc/$pid/smaps_rollup" 2>/dev/null; done | awk '{ s += $1; n++ } END { printf "%d", n ? s / n : 0 }')
echo "of which cube-init: $agents KiB"
echo "the daemon: $(daemon_kib) KiB"
ls -l "$MNT" >/dev/null
echo "ls -l of the root (us, p50 p90 max): $("$BENCH" spawn 10 sh -c "ls -l '$MNT' >/dev/null")"
