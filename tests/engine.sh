#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A container engine for a test, and its end.
#
#     engine.sh run docker COMMAND...    with CUBEFS_TEST_DOCKER, the lines of a [backend] section for it
#     engine.sh up docker DIR            it listens at DIR/sock; `down docker DIR` ends it,
#                                       `again docker DIR` starts it after it was killed
#
# Everything of it is below one directory. It makes no network, so no rule of this machine is touched, and has one image,
# cubefs-test: a static busybox. Exit code 77 where there can be none.
set -u

say() {
	printf 'skipped: %s\n' "$*"
	exit 77
}

engine_image() { # DIR
	local root=$1/image name
	mkdir -p "$root"/{bin,etc,root,usr,var} "$root/home" && mkdir -m 1777 "$root/tmp" || return
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
	rm -f "$1/pid"
	dockerd --iptables=false --ip6tables=false --bridge=none -H "unix://$1/sock" --data-root "$1/data" \
		--exec-root "$1/run" -p "$1/pid" >"$1/log" 2>&1 </dev/null &
	for _ in $(seq 300); do
		curl -s --unix-socket "$1/sock" http://engine/_ping 2>/dev/null | grep -q OK && return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	tail -n 5 "$1/log"
	return 1
}

docker_up() { # DIR
	[ "$(id -u)" -eq 0 ] || say 'an engine is started by root alone'
	command -v dockerd >/dev/null || say 'dockerd is not installed (apt-get install docker.io)'
	mkdir -p "$1" && docker_start "$1" && engine_image "$1"
}

# Only what was started here: the engine by its own file of its number, what it mounted by the directory.
docker_down() { # DIR
	local pid
	pid=$(cat "$1/pid" 2>/dev/null)
	if [ -n "$pid" ]; then
		kill -0 "$pid" 2>/dev/null || docker_start "$1" >/dev/null # what it left running is its own to end
		pid=$(cat "$1/pid" 2>/dev/null)
		for id in $(curl -s --unix-socket "$1/sock" 'http://engine/v1.41/containers/json?all=1' |
			grep -o '"Id":"[0-9a-f]*"' | cut -d '"' -f 4); do
			curl -s --unix-socket "$1/sock" -X DELETE "http://engine/v1.41/containers/$id?force=1" >/dev/null
		done
		kill "$pid" 2>/dev/null
		for _ in $(seq 200); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	fi
	awk -v dir="$1/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l
	rm -rf "$1"
}

if [ $# -lt 3 ] || [ "$2" != docker ]; then
	echo 'usage: engine.sh run docker COMMAND... | up|again|down docker DIR' >&2
	exit 2
fi
verb=$1
shift 2
case $verb in
up) docker_up "$1" ;;
again) docker_start "$1" ;;
down) docker_down "$1" ;;
run)
	dir=$(mktemp -d /tmp/cubefs-engine.XXXXXX)
	trap 'docker_down "$dir"' EXIT
	docker_up "$dir" || exit
	export CUBEFS_TEST_DOCKER="url = unix://$dir/sock
template = cubefs-test"
	"$@"
	;;
esac
