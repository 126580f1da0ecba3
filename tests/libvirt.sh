#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A libvirtd for a test, and its end.
#
#     libvirt.sh run COMMAND...    with CUBEFS_TEST_LIBVIRT, the lines of a [backend] section for it
#     libvirt.sh up DIR            it listens at DIR/sock/libvirt-sock, and DIR/conf has these lines; `down DIR` ends it with
#                                  all its machines, `again DIR` starts it after it was killed
#
# Everything of it is below one directory: it runs in a mount namespace of its own, in which libvirt's directories are
# those. Its machines run without KVM, so that they do everywhere; there is one template, `small` (tests/guest/machine.sh).
# Exit code 77 where there can be none. As root alone.
set -u

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

say() {
	printf 'skipped: %s\n' "$*"
	exit 77
}

libvirt_conf() { # DIR
	mkdir -p "$1"/{run,etc/qemu,lib,cache,log,sock,box} || return
	chmod 711 "$1" "$1/box"
	cat >"$1/libvirtd.conf" <<-END
		unix_sock_dir = "$1/sock"
		auth_unix_rw = "none"
		auth_unix_ro = "none"
		unix_sock_rw_perms = "0700"
		log_outputs = "3:file:$1/log/libvirtd.log"
	END
	# The control groups of a machine that runs tests are of any layout; labels are another test's matter.
	cat >"$1/etc/qemu.conf" <<-END
		user = "root"
		group = "root"
		security_driver = "none"
		cgroup_controllers = []
		namespaces = []
		remember_owner = 0
		stdio_handler = "file"
	END
	cat >"$1/conf" <<-END
		url = qemu:///system?socket=$1/sock/libvirt-sock
		dir = $1/box
		template = small
		accel = tcg
		memory = 192M
	END
}

libvirt_start() { # DIR
	rm -f "$1"/sock/* "$1/pid"
	# shellcheck disable=SC2016 # for the shell inside
	unshare -m sh -c '
		mount --make-rprivate / || exit
		for pair in run:/run/libvirt etc:/etc/libvirt lib:/var/lib/libvirt cache:/var/cache/libvirt log:/var/log/libvirt; do
			mkdir -p "${pair#*:}" && mount --bind "$1/${pair%%:*}" "${pair#*:}" || exit
		done
		exec libvirtd -f "$1/libvirtd.conf" -p "$1/pid"' sh "$1" >"$1/out" 2>&1 </dev/null &
	for _ in $(seq 300); do
		[ -S "$1/sock/libvirt-sock" ] && return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	tail -n 5 "$1/out" "$1/log/libvirtd.log"
	return 1
}

libvirt_up() { # DIR
	[ "$(id -u)" -eq 0 ] || say 'a libvirtd of its own directories is started by root alone'
	command -v libvirtd >/dev/null || say 'libvirtd is not installed (apt-get install libvirt-daemon-system)'
	command -v qemu-system-x86_64 >/dev/null || say 'QEMU is not installed (apt-get install qemu-system-x86)'
	command -v qemu-img >/dev/null || say 'qemu-img is not installed (apt-get install qemu-utils)'
	libvirt_conf "$1" && "$HERE/guest/machine.sh" "$1/box/templates/small" || return
	libvirt_start "$1"
}

# By the files in which libvirt has the numbers of what it started: nothing else is touched.
libvirt_down() { # DIR
	local file pid
	for file in "$1/pid" "$1"/run/qemu/*.pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		kill -KILL "$pid" 2>/dev/null
		for _ in $(seq 100); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	done
	rm -rf "$1"
}

if [ $# -lt 2 ]; then
	echo 'usage: libvirt.sh run COMMAND... | up|again|down DIR' >&2
	exit 2
fi
verb=$1
shift
case $verb in
up) libvirt_up "$1" ;;
again) libvirt_start "$1" ;;
down) libvirt_down "$1" ;;
run)
	dir=$(mktemp -d /tmp/cubefs-libvirt.XXXXXX)
	trap 'libvirt_down "$dir"' EXIT
	libvirt_up "$dir" || exit
	CUBEFS_TEST_LIBVIRT=$(cat "$dir/conf")
	export CUBEFS_TEST_LIBVIRT
	"$@"
	;;
esac
