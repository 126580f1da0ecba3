#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to a first sandbox: installs what is missing, builds, mounts at ~/cubes and runs
# a command in a sandbox. For root and for ordinary users; may be run again at any time.
#
#     ./setup.sh [MOUNTPOINT]
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 1
. "$TOP/cmake/debian.sh"

SANDBOX=hello
USAGE='usage: ./setup.sh [MOUNTPOINT]      (MOUNTPOINT: ~/cubes unless given)'

step() { # a line for people, in front of what is done
	printf '\n== %s\n' "$*"
}

die() { # SENTENCE [WHAT-TO-DO]
	printf '\nsetup: %s\n' "$1" >&2
	[ "$#" -lt 2 ] || printf '       %s\n' "$2" >&2
	exit 1
}

show() { # a command line of the tour: print it, run it
	printf '$ %s\n' "$1"
	(cd "$MOUNT" && eval "$1")
}

parse() {
	case ${1-} in
	-h | --help)
		echo "$USAGE"
		exit 0
		;;
	-*) die "there is no option '$1'" "$USAGE" ;;
	esac
	[ "$#" -le 1 ] || die 'more than one mount point is given' "$USAGE"
	if [ -z "${1-}" ] && [ -z "${HOME-}" ]; then
		die 'HOME is not set' "name the mount point: ./setup.sh MOUNTPOINT"
	fi
	MOUNT=${1:-$HOME/cubes}
	case $MOUNT in /*) ;; *) MOUNT=$PWD/$MOUNT ;; esac
}

check_system() {
	[ "$(uname -s)" = Linux ] || die 'cubefs needs Linux'
	local major minor
	IFS=.- read -r major minor _ <<<"$(uname -r)"
	if [ "$major" -lt 5 ] || { [ "$major" -eq 5 ] && [ "$minor" -lt 14 ]; }; then
		die "this kernel is $(uname -r), and cubefs needs 5.14 or later" 'boot a newer kernel'
	fi
}

packages() {
	step '1/5 packages: what building and running needs'
	debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" ||
		die 'packages are missing' 'run ./setup.sh again when they are there'
}

# Runs a command with the rights of an administrator, or fails.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		sudo "$@"
	else
		return 1
	fi
}

fuse_device() {
	step '2/5 /dev/fuse: mounting goes through it'
	if [ ! -c /dev/fuse ]; then
		as_root modprobe fuse 2>/dev/null
		[ -c /dev/fuse ] || die 'there is no /dev/fuse' \
			'an administrator has to run: modprobe fuse   (in a container: start it with --device /dev/fuse)'
	fi
	if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
		echo 'it is closed to ordinary users; opening it (mode 666)'
		as_root chmod 666 /dev/fuse 2>/dev/null
		if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
			die '/dev/fuse is closed to ordinary users' 'an administrator has to run: chmod 666 /dev/fuse'
		fi
	fi
	# fusermount3 looks for mounts there; images of containers leave it out.
	if [ ! -e /etc/mtab ] && ! as_root ln -s ../proc/self/mounts /etc/mtab 2>/dev/null; then
		echo 'note: there is no /etc/mtab, without which an ordinary user cannot unmount; an administrator can run:'
		echo '    ln -s ../proc/self/mounts /etc/mtab'
	fi
	echo 'usable'
}

build_into() { # DIRECTORY
	(cd "$TOP" && cmake --preset release -B "$1" -DCUBEFS_TESTS=OFF) &&
		cmake --build "$1" --parallel "$(nproc)"
}

build() {
	step '3/5 build'
	BUILD=$TOP/build/release
	if ! mkdir -p "$BUILD" 2>/dev/null || [ ! -w "$BUILD" ]; then
		BUILD=${XDG_CACHE_HOME:-$HOME/.cache}/cubefs/build
		mkdir -p "$BUILD" || die "neither $TOP/build nor $BUILD can be written" \
			'copy the source to a directory of your own'
	fi
	echo "in $BUILD"
	local log=$BUILD/setup.log
	if ! build_into "$BUILD" >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		die 'the build failed' "the whole output is in $log"
	fi
	CUBEFS=$BUILD/fs/cubefs
	[ -x "$CUBEFS" ] || die "the build left no $CUBEFS" "the whole output is in $log"
	echo "built $CUBEFS"
}

is_mounted() {
	grep -qF " $(printf '%s' "$MOUNT" | sed 's/ /\\040/g') " /proc/self/mounts
}

# A mount of ours that answers. A dead daemon leaves one behind that answers ENOTCONN.
answers() {
	timeout 10 cat "$MOUNT/README" >/dev/null 2>&1
}

mount_it() {
	step "4/5 mount at $MOUNT"
	if is_mounted; then
		if answers; then
			echo 'mounted already'
			return
		fi
		echo 'what is mounted there does not answer; unmounting it'
		"$CUBEFS" umount "$MOUNT" 2>/dev/null || fusermount3 -u -z "$MOUNT" ||
			die "$MOUNT cannot be unmounted" "run: fusermount3 -u -z $MOUNT"
	fi
	if [ -d "$MOUNT" ] && [ -n "$(ls -A "$MOUNT" 2>/dev/null)" ]; then
		die "$MOUNT is a directory with files in it" 'name another one: ./setup.sh MOUNTPOINT'
	fi
	if [ "$(id -u)" -ne 0 ] && [ "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null || echo 0)" -eq 0 ]; then
		die 'user namespaces are switched off here, and without them an ordinary user has no sandboxes' \
			'an administrator has to run: sysctl user.max_user_namespaces=10000'
	fi
	printf '$ cubefs %s\n' "$MOUNT"
	"$CUBEFS" "$MOUNT" || die 'cubefs could not mount (above is why)' "more is said by: $CUBEFS doctor"
	answers || die "$MOUNT is mounted and does not answer" "see what is wrong with: $CUBEFS doctor"
}

first_sandbox() {
	step "5/5 a first sandbox, '$SANDBOX'"
	if [ ! -d "$MOUNT/$SANDBOX" ]; then
		show "mkdir $SANDBOX" || die 'the sandbox was refused' "the reason: $(tail -n 1 "$MOUNT/error")"
	else
		echo "it is there already: $(awk '$1 == "state" { print $2 }' "$MOUNT/$SANDBOX/status")"
		grep -qx 'state stopped' "$MOUNT/$SANDBOX/status" && show "echo start > $SANDBOX/ctl"
	fi
	show "echo 'echo hello from \$(uname -n), as \$(id -un)' > $SANDBOX/exec" ||
		die 'the command was refused' "the reason: $(tail -n 1 "$MOUNT/$SANDBOX/error")"
	show "cat $SANDBOX/exec $SANDBOX/exit" || die 'its output cannot be read'
	[ "$(cat "$MOUNT/$SANDBOX/exit")" = 0 ] || die 'the command did not end with 0' \
		"see $MOUNT/$SANDBOX/error, and what $CUBEFS doctor says"
}

what_next() {
	step 'done'
	cat <<EOF
cat $MOUNT/README                    the manual, in the mount
rmdir $MOUNT/$SANDBOX                  ends the sandbox
$CUBEFS umount $MOUNT        ends the mount
cmake --install $BUILD               (as root) installs cubefs and its manual pages
EOF
}

parse "$@"
check_system
packages
fuse_device
build
mount_it
first_sandbox
what_next
