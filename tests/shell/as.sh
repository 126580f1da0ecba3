#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one shell test: as.sh root|user TEST [ARGUMENT...]
#
# `root` runs it as root; `user` as an ordinary user: who calls, or, called by root, the user cubetest
# (made by tests/run.sh). It gets an empty directory (CUBEFS_TEST_DIR), a clean environment and cubefs in
# its PATH. Afterwards nothing may be left of it: no process (reap), no mount, no control group, no file.
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
TEST_USER=cubetest
MODE=${1:?root or user}
TEST=$(realpath -- "${2:?the test}") || exit 2
shift 2
BUILD=${CUBEFS_BUILD_DIR:-$HERE/../../build/dev}
SECONDS_MAX=${CUBEFS_TEST_SECONDS:-280}
COMMAND=()
CODE=0

skip() {
	printf 'skip: %s\n' "$*"
	exit 77
}

problem() {
	printf 'FAIL: %s\n' "$*" >&2
	[ "$CODE" -ne 0 ] || CODE=1
}

# The user's copy of the binaries and tests, since he may not be able to read those here (stage.sh).
use_stage() {
	local stage
	stage=$("$HERE/stage.sh" where "$BUILD")
	[ -d "$stage" ] || "$HERE/stage.sh" make "$BUILD" || exit 1
	BUILD=$stage
	TEST=$stage/tests/shell/$(basename "$TEST")
}

choose_user() {
	local me
	me=$(id -u)
	case $MODE in
	root)
		[ "$me" -eq 0 ] || skip 'needs root'
		;;
	user)
		[ "$me" -eq 0 ] || return 0
		id "$TEST_USER" >/dev/null 2>&1 || skip "there is no user $TEST_USER (tests/run.sh makes it)"
		use_stage
		chown "$TEST_USER:" "$DIR"
		COMMAND=(setpriv --reuid "$TEST_USER" --regid "$TEST_USER" --init-groups --inh-caps=-all)
		[ "$(stat -c %a /dev/fuse 2>/dev/null)" = 666 ] || skip '/dev/fuse is closed to ordinary users'
		;;
	*)
		echo "as.sh: '$MODE' is neither root nor user" >&2
		exit 2
		;;
	esac
}

check_mounts() {
	local where
	while read -r where; do
		problem "a mount is left: $where"
		umount -l "$where" 2>/dev/null || fusermount3 -u -z "$where"
	done < <(awk -v dir="$DIR" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
}

# The sandboxes' own marks, noted by lib.sh at the end, before it destroyed them.
check_groups() {
	local mark group
	[ -f "$DIR/uids" ] || return 0
	while read -r mark; do
		while read -r group; do
			problem "a control group is left: $group"
		done < <(find /sys/fs/cgroup -depth -type d -name "*$mark*" 2>/dev/null)
	done < <(sort -u "$DIR/uids")
}

check_files() {
	chmod -R u+rwX "$DIR" 2>/dev/null
	rm -rf --one-file-system "$DIR" || problem "files are left in $DIR"
}

DIR=$(mktemp -d "${TMPDIR:-/tmp}/cubefs-test.XXXXXX") || exit 1
chmod 755 "$DIR"
trap 'rmdir "$DIR" 2>/dev/null' EXIT
choose_user
[ -x "$BUILD/fs/cubefs" ] || { echo "as.sh: there is no $BUILD/fs/cubefs" >&2; exit 1; }
mkdir "$DIR/home"
[ "${#COMMAND[@]}" -eq 0 ] || chown "$TEST_USER:" "$DIR/home"

cd "$DIR" || exit 1
"$BUILD/tests/shell/reap" "$SECONDS_MAX" ${COMMAND[@]+"${COMMAND[@]}"} env -i \
	PATH="$BUILD/fs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	HOME="$DIR/home" LC_ALL=C TERM=dumb CUBEFS_TEST_DIR="$DIR" CUBEFS_BUILD_DIR="$BUILD" \
	ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
	TSAN_OPTIONS=second_deadlock_stack=1 CUBEFS_TEST_LONG="${CUBEFS_TEST_LONG-}" \
	bash "$TEST" "$@" </dev/null
CODE=$?
cd / || exit 1
check_mounts
check_groups
check_files
exit "$CODE"
