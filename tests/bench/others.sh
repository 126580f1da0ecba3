# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What a user would pick instead: crun by itself, an engine, another server of 9P. Each is started when the first row asks for it.

CRUN_UP='' DOCKERD='' DIOD=''

# crun refuses a hybrid layout of control groups: without `unified` it is content.
crun_alone() {
	unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh "$@"
}

crun_bench() { # COUNT ARG...: of crun, timed
	local count=$1
	shift
	crun_alone "$BENCH" spawn "$count" crun --root "$WORK/crun" --cgroup-manager=disabled "$@" </dev/null
}

crun_config() { # FILE WORD...: what `crun spec` gives, running these words
	python3 - "$@" <<'E2'
import json, sys
c = json.load(open(sys.argv[1]))
c['process']['terminal'] = False
c['process']['args'] = sys.argv[2:]
c['root']['readonly'] = False
json.dump(c, open(sys.argv[1], 'w'))
E2
}

# A container of this machine's own programs, as cubefs has them, that sleeps.
crun_up() {
	local root=$WORK/bundle/rootfs dir
	[ -z "$CRUN_UP" ] || return 0
	mkdir -p "$root"/{proc,sys,dev,tmp,usr,etc}
	for dir in bin sbin lib lib64; do
		if [ -L "/$dir" ]; then cp -P "/$dir" "$root/"; fi
	done
	mount --bind -o ro /usr "$root/usr" || return
	CRUN_UP=yes
	(cd "$WORK/bundle" && crun spec) && crun_config "$WORK/bundle/config.json" sleep 1000000 &&
		crun_alone crun --root "$WORK/crun" --cgroup-manager=disabled run --detach --bundle "$WORK/bundle" sleeper \
			</dev/null >"$WORK/crun.log" 2>&1 && crun_config "$WORK/bundle/config.json" /bin/true
}

docker_here() {
	docker -H "unix://$WORK/docker.sock" "$@"
}

# An image of this machine's shell and its libraries; no network, so no rule of this machine is touched.
docker_up() {
	[ -z "$DOCKERD" ] || return 0
	command -v dockerd >/dev/null || {
		echo 'dockerd is not installed (apt-get install docker.io)' >"$WORK/docker.log"
		return 1
	}
	dockerd --iptables=false --bridge=none -H "unix://$WORK/docker.sock" --data-root "$WORK/docker" \
		--exec-root "$WORK/docker-run" -p "$WORK/docker.pid" >"$WORK/docker.log" 2>&1 &
	DOCKERD=$!
	for _ in $(seq 150); do
		docker_here info >/dev/null 2>&1 && break
		sleep 0.2
	done
	# shellcheck disable=SC2046
	tar -C / -c -h $(ldd /bin/sh /bin/sleep | grep -o '/lib[^ ]*' | sort -u | cut -c 2-) \
		bin/sh bin/sleep bin/true 2>/dev/null | docker_here import - bench >/dev/null 2>>"$WORK/docker.log" &&
		docker_here run -d --network none --name sleeper bench /bin/sleep 1000000 >/dev/null 2>>"$WORK/docker.log"
}

docker_bench() { # COUNT ARG...
	local count=$1
	shift
	"$BENCH" spawn "$count" docker -H "unix://$WORK/docker.sock" "$@"
}

# Serves a directory at $WORK/diod.
diod_up() { # DIRECTORY
	[ -z "$DIOD" ] || return 0
	command -v diod >/dev/null || return
	diod -f -n -N -l "$WORK/diod" -e "$1" -L "$WORK/diod.log" >/dev/null 2>&1 &
	DIOD=$!
	for _ in $(seq 100); do
		[ ! -S "$WORK/diod" ] || return 0
		sleep 0.1
	done
	return 1
}

others_down() {
	if [ -n "$DIOD" ]; then
		kill "$DIOD"
		wait "$DIOD" 2>/dev/null
	fi
	if [ -n "$CRUN_UP" ]; then
		crun_alone crun --root "$WORK/crun" delete -f sleeper >/dev/null 2>&1
		umount -l "$WORK/bundle/rootfs/usr"
	fi
	if [ -n "$DOCKERD" ]; then
		docker_here rm -f sleeper >/dev/null 2>&1
		kill "$DOCKERD"
		wait "$DOCKERD" 2>/dev/null
		awk -v dir="$WORK/docker" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l
	fi
}
