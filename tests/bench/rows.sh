# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The rows: a function each, which measures one thing and prints its lines of the table. Each makes what it needs
# and takes it away again.

MANY=${CUBEFS_BENCH_MANY:-1000}

row_exec() {
	local floor own
	make one
	cp "$BUILD/tests/bench/bench-floor" "$MNT/one/workspace/floor"
	"$BENCH" exec "$MNT/one" 20 /bin/true >/dev/null
	own=$("$BENCH" exec "$MNT/one" "$COUNT" /bin/true | p50)
	put "$MNT/one/exec" "/workspace/floor $COUNT /bin/true"
	floor=$(p50 <"$MNT/one/exec")
	remember exec "$own"
	at_most_ms 'echo /bin/true > exec; cat exec, p50' "$own" \
		"$(awk -v f="$floor" 'BEGIN { print 2 * f + 500 }')" '2 x floor + 0.5 ms'
	line '  floor: vfork and exec in the same namespaces' "$(ms "$floor")" '-' '-'
	unmake one
}

row_exec_crun() {
	crun_up || { note '  crun exec' "$(tail -n 1 "$WORK/crun.log")"; return; }
	beside '  crun exec' "$(crun_bench "$COUNT" exec sleeper /bin/true | p50)" exec 3
}

row_exec_docker() {
	docker_up || { note '  docker exec' "$(tail -n 1 "$WORK/docker.log")"; return; }
	beside '  docker exec' "$(docker_bench 20 exec sleeper /bin/true | p50)" exec 30
}

row_parallel() {
	local names=()
	mapfile -t names < <(seq -f 'p%g' 50)
	make "${names[@]}"
	at_most_ms '200 commands at once over 50 sandboxes, the longest' \
		"$("$BENCH" together "$MNT" 4 /bin/true "${names[@]}" | longest)" 1000000
	unmake "${names[@]}"
}

row_create() {
	local own crun=
	"$BENCH" first "$MNT" 3 /bin/true >/dev/null
	own=$("$BENCH" first "$MNT" 20 /bin/true | p50)
	remember create "$own"
	if crun_up; then crun=$(crun_bench 20 run --bundle "$WORK/bundle" once | p50); fi
	if [ -z "$crun" ]; then
		line 'mkdir, then to the first output, p50' "$(ms "$own")" '-' '-'
		note '  crun run' "$(tail -n 1 "$WORK/crun.log")"
		return
	fi
	settled
	at_most_ms 'mkdir, then to the first output, p50' "$own" "$(awk -v c="$crun" 'BEGIN { print 2 * c }')" '2 x crun run'
	line '  crun run /bin/true' "$(ms "$crun")" '-' '-'
}

# Out of a pool that is not filled again meanwhile.
row_pool() {
	local pool=$MNT/backends/local/pools/bench times=() names=() i begin
	mkdir "$pool"
	put "$pool/size" '1 20'
	for ((i = 0; i < 600; i++)); do
		[ "$(cat "$pool/ready")" -lt 20 ] || break
		sleep 0.1
	done
	for i in {1..19}; do
		begin=${EPOCHREALTIME/./}
		put "$MNT/ctl" "create t$i pool=bench"
		times+=($((${EPOCHREALTIME/./} - begin)))
		names+=("t$i")
	done
	at_most_ms 'create X pool=P, a ready one, p50' "$(printf '%s\n' "${times[@]}" | sort -n | sed -n 10p)" 5000
	unmake "${names[@]}"
	rmdir "$pool"
}

row_create_docker() {
	docker_up || { note '  docker run' "$(tail -n 1 "$WORK/docker.log")"; return; }
	beside '  docker run --rm /bin/true' "$(docker_bench 5 run --rm --network none bench /bin/true | p50)" create 10
}

row_hundred() {
	local us
	us=$("$BENCH" create "$MNT" 100 /bin/true 2>&1 >/dev/null | awk '/^all usable/ { print $4 * 1000 }')
	at_most_ms '100 sandboxes at once, until each has given its output' "$us" 2000000
	settled
}

row_idle() {
	local group pid kib=0 kernel
	make idle
	group=$(group_of idle)
	while read -r pid; do
		kib=$((kib + $(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")))
	done <"$group/cgroup.procs"
	at_most_mib 'an idle sandbox: memory of its processes (PSS)' "$kib" 2
	kernel=$(cat "$group/memory.kmem.usage_in_bytes" 2>/dev/null || field "$group/memory.stat" kernel)
	line '  and what the kernel keeps for it (its control group)' \
		"$(awk -v b="${kernel:-0}" 'BEGIN { printf "%.2f MiB", b / 1048576 }')" '-' '-'
	unmake idle
}

# The reader takes 4 KiB and then nothing, until the command has ended.
row_stalled() {
	local before now most=0
	make stalled
	put "$MNT/stalled/exec" true
	before=$(daemon_kib)
	exec 7<>"$MNT/stalled/exec"
	put /proc/self/fd/7 'head -c 400000000 /dev/zero | tr "\0" x'
	head -c 4096 <&7 >/dev/null
	while [ "$(cat "$MNT/stalled/exit")" = - ]; do
		now=$(daemon_kib)
		most=$((now > most ? now : most))
		sleep 0.05
	done
	exec 7<&-
	now=$(daemon_kib)
	most=$((now > most ? now : most))
	at_most_mib '400 MB of output, a stalled reader: the daemon grows by' $((most > before ? most - before : 0)) 8
	unmake stalled
}

# What the neighbour of a fork bomb, a memory hog and a disk hog gets.
row_hogs() {
	make good bomb eater filler
	put "$MNT/bomb/ctl" 'set pids=64' || true
	put "$MNT/eater/ctl" 'set memory=128M' || true
	mkdir "$MNT/bomb/jobs/h" "$MNT/eater/jobs/h" "$MNT/filler/jobs/h"
	"$BENCH" exec "$MNT/good" 20 /bin/true >/dev/null
	put "$MNT/bomb/jobs/h/cmd" 'b() { b | b & b; }; b'
	put "$MNT/eater/jobs/h/cmd" 'while :; do head -c 400000000 /dev/zero | tail -c 300000000 >/dev/null; done'
	put "$MNT/filler/jobs/h/cmd" 'while :; do head -c 100000000 /dev/zero >/workspace/big; done'
	sleep 1
	line 'exec beside a fork bomb, a memory and a disk hog, p50' \
		"$(ms "$("$BENCH" exec "$MNT/good" 50 /bin/true | p50)")" '-' '-'
	unmake good bomb eater filler
}

row_many() {
	local names=()
	mapfile -t names < <(seq -f 'n%g' "$MANY")
	make "${names[@]}"
	at_most_ms "$MANY idle sandboxes: ls -l, p50" "$("$BENCH" spawn 10 sh -c "ls -l '$MNT' >/dev/null" | p50)" 50000
	at_most_mib "$MANY idle sandboxes: the daemon's memory (RSS)" "$(daemon_kib)" 64
	unmake "${names[@]}"
}
