#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A container engine for a test, and its end.
#
#     engine.sh run KIND COMMAND...    with CUBEFS_TEST_DOCKER, the lines of a [backend] section for it
#     engine.sh up KIND DIR            it listens at DIR/sock; `down KIND DIR` ends it,
#                                     `again KIND DIR` starts it after it was killed
#
# KIND is docker or podman. Everything of it is below one directory. It makes no network, so no rule of this machine is
# touched, and has one image, cubefs-test: a static busybox. Exit code 77 where there can be none. DIR/flags, if there is
# such a file, has words for dockerd's command line.
set -u

say() {
	printf 'skipped: %s\n' "$*"
	exit 77
}

engine_image() { # DIR
	local root=$1/image name
	mkdir -p "$root"/{bin,etc,root,srv,usr,var} "$root/home" && mkdir -m 1777 "$root/tmp" || return
	cp "$(command -v busybox)" "$root/bin/busybox"
	for name in $("$root/bin/busybox" --list); do
		[ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"
	done
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
	echo test >"$root/etc/name"
	tar -C "$root" -c . | curl -sSf -o "$1/image.log" --unix-socket "$1/sock" -H 'Content-Type: application/x-tar' \
		--data-binary @- -X POST 'http://engine/v1.41/images/create?fromSrc=-&repo=cubefs-test'
}

docker_start() { # DIR
	local flags=()
	[ ! -f "$1/flags" ] || read -ra flags <"$1/flags"
	dockerd "${flags[@]}" --iptables=false --ip6tables=false --bridge=none -H "unix://$1/sock" --data-root "$1/data" \
		--exec-root "$1/run" -p "$1/pid" >"$1/log" 2>&1 </dev/null &
}

# Its own defaults are limits above what a process here may have, control groups by systemd, and a runtime that refuses
# control groups of both versions beside each other.
podman_start() { # DIR
	cat >"$1/containers.conf" <<-END
		[containers]
		default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
		netns = "none"
		log_driver = "k8s-file"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
	END
	CONTAINERS_CONF=$1/containers.conf podman --runtime runc --root "$1/data" --runroot "$1/run" --tmpdir "$1/tmp" \
		--storage-driver overlay system service --time=0 "unix://$1/sock" >"$1/log" 2>&1 </dev/null &
	echo "$!" >"$1/pid"
}

engine_start() { # KIND DIR
	rm -f "$2/pid" "$2/sock"
	"$1_start" "$2"
	for _ in $(seq 300); do
		curl -s --unix-socket "$2/sock" http://engine/_ping 2>/dev/null | grep -q OK && return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	tail -n 5 "$2/log"
	return 1
}

engine_up() { # KIND DIR
	[ "$(id -u)" -eq 0 ] || say 'an engine is started by root alone'
	case $1 in
	docker) command -v dockerd >/dev/null || say 'dockerd is not installed (apt-get install docker.io)' ;;
	podman) command -v podman runc >/dev/null || say 'podman or runc is not installed (apt-get install podman runc)' ;;
	esac
	mkdir -p "$2" && engine_start "$1" "$2" && engine_image "$2"
}

engine_remove_all() { # KIND DIR
	local id
	for id in $(curl -s --unix-socket "$2/sock" 'http://engine/v1.41/containers/json?all=1' |
		grep -o '"Id":"[0-9a-f]*"' | cut -d '"' -f 4); do
		curl -s --unix-socket "$2/sock" -X POST "http://engine/v1.41/containers/$id/kill" >/dev/null
		curl -s --unix-socket "$2/sock" -X DELETE "http://engine/v1.41/containers/$id?force=1" >/dev/null
	done
}

# Only what was started here: the engine by its own file of its number, what it mounted by the directory.
engine_down() { # KIND DIR
	local pid
	pid=$(cat "$2/pid" 2>/dev/null)
	if [ -n "$pid" ]; then
		kill -0 "$pid" 2>/dev/null || engine_start "$1" "$2" >/dev/null # what it left running is its own to end
		pid=$(cat "$2/pid" 2>/dev/null)
		engine_remove_all "$1" "$2"
		kill "$pid" 2>/dev/null
		for _ in $(seq 200); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	fi
	# Podman's watch over what it has executed stays for five minutes after that.
	[ "$1" = docker ] || pkill -KILL -f "^/usr/bin/conmon .* $2/" || true
	awk -v dir="$2/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l
	rm -rf "$2"
}

if [ $# -lt 3 ] || { [ "$2" != docker ] && [ "$2" != podman ]; }; then
	echo 'usage: engine.sh run KIND COMMAND... | up|again|down KIND DIR' >&2
	exit 2
fi
verb=$1 kind=$2
shift 2
case $verb in
up) engine_up "$kind" "$1" ;;
again) engine_start "$kind" "$1" ;;
down) engine_down "$kind" "$1" ;;
run)
	dir=$(mktemp -d /tmp/cubefs-engine.XXXXXX)
	trap 'engine_down "$kind" "$dir"' EXIT
	engine_up "$kind" "$dir" || exit
	export CUBEFS_TEST_DOCKER="url = unix://$dir/sock
template = cubefs-test"
	"$@"
	;;
esac
