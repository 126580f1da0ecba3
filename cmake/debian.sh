# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Which Debian packages cubefs needs, and installing those that are missing. For setup.sh and
# tests/run.sh; only sets variables and functions.

# shellcheck disable=SC2034 # used by who reads this file
DEBIAN_BUILD=(gcc libc6-dev musl-tools cmake ninja-build pkgconf libfuse3-dev libjansson-dev libuv1-dev
	libinih-dev libarchive-dev libcap-dev libssl-dev libhttp-parser-dev libcurl4-openssl-dev libncurses-dev
	libvirt-dev libxml2-dev)
# shellcheck disable=SC2034
DEBIAN_RUN=(fuse3 crun uidmap passt iproute2 btrfs-progs)
# shellcheck disable=SC2034
DEBIAN_TEST=(libcmocka-dev clang libclang-rt-14-dev clang-tidy clang-format-14 cppcheck shellcheck mandoc
	binutils make git procps psmisc python3 python3-pip tar rsync sqlite3 vim-tiny tmux dpkg-dev busybox-static xfsprogs
	curl python3-websockets python3-jsonschema python3-yaml docker.io stress-ng fio dbench fsmark nano less attr inotify-tools
	openssl qemu-system-x86 cpio kmod diod socat libvirt-daemon-system qemu-utils)
# shellcheck disable=SC2034
DEBIAN_BENCH=(docker.io diod python3 procps xfsprogs)
# shellcheck disable=SC2034
DEBIAN_BENCH_FILES=(bindfs sshfs openssh-server fio git ripgrep sqlite3)

# The packages of the arguments that are not installed, one a line.
debian_missing() {
	local package
	for package in "$@"; do
		case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
		installed) ;;
		*) printf '%s\n' "$package" ;;
		esac
	done
}

# Installs what is missing of the arguments, as root, or through sudo. Where neither is possible, says
# the line that an administrator must run and returns 1.
debian_install() {
	local missing root=()
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		printf 'this is not Debian: see to it that these, or what they are called here, are installed:\n'
		printf '    %s\n' "$*"
		return 0
	fi
	mapfile -t missing < <(debian_missing "$@")
	if [ "${#missing[@]}" -eq 0 ]; then
		printf 'nothing is missing\n'
		return 0
	fi
	printf 'missing: %s\n' "${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
			printf 'installing needs an administrator, who has to run this once:\n\n'
			printf '    apt-get update && apt-get install --no-install-recommends %s\n\n' "${missing[*]}"
			return 1
		fi
		root=(sudo)
		printf 'sudo is asked to install them\n'
	fi
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c '
		apt-get -q update &&
		apt-get -qy -o Dpkg::Use-Pty=0 install --no-install-recommends "$@"' sh "${missing[@]}" </dev/null >/dev/null || {
		printf 'apt-get could not install them (above is why): check the network and the package sources\n'
		return 1
	}
	printf 'installed\n'
}
