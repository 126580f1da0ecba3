#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The real Linux client: a guest mounts the tree with v9fs and runs the tour and shell tests on it. Tests that are
# not in the list use the host's side of the daemon (its state, its log, its options, its processes), a program that
# the guest has not (python3), or are too long for every run.
#
#     v9fs.sh [TEST...]        the short list, or these; with CUBEFS_TEST_LONG set, the long list too
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/lib.sh"
require qemu-system-x86_64 cpio modprobe apt-get dpkg
GUEST_TESTS=(tour exec sessions life)
[ -z "${CUBEFS_TEST_LONG-}" ] || GUEST_TESTS+=(stdin jobs links)
[ "$#" -eq 0 ] || GUEST_TESTS=("$@")
PROGRAMS=(bash cat cp mv rm ls ln mkdir rmdir stat touch tail head wc cmp diff grep sed awk find sort seq timeout
	tr cut tee dd date sleep env od chmod chown truncate mkfifo readlink realpath basename dirname fold
	tar rsync pgrep setsid id sha256sum xargs printenv uniq split mktemp test printf true false)

# Programs, the tests, and the list of those that run.
make_image() { # FILE
	local program paths=()
	for program in "${PROGRAMS[@]}"; do
		paths+=("$(type -P "$program")")
	done
	mkdir -p "$WORK/image/tests"
	cp -r "$(dirname "$0")/../shell" "$WORK/image/tests/"
	printf '%s\n' "${GUEST_TESTS[@]}" >"$WORK/image/tests/list"
	GUEST_OVERLAY=$WORK/image guest_initrd "$1" "$(dirname "$0")/tree" "${paths[@]}"
}

failures() { # FILE: tests that have not passed, and what became of them
	local name code
	for name in "${GUEST_TESTS[@]}"; do
		code=$(awk -v name="$name" '$1 == "result" && $2 == name { sub(/,/, "", $3); print $3 }' "$1")
		[ "$code" = 0 ] || printf '%s (%s) ' "$name" "${code:-no result}"
	done
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

guest_kernel || skip 'there is no kernel for a guest'
make_image "$WORK/initrd"
PORT=$(free_port)
start_cubefs --9p "tcp:127.0.0.1:$PORT"
guest_boot 240 "$WORK/initrd" "tree.host=10.0.2.2 tree.port=$PORT tree.options=cache=none" \
	-netdev user,id=net -device virtio-net-pci,netdev=net,romfile= | tee "$WORK/console" || true
check_eq "$(failures "$WORK/console")" '' 'what has not passed'
check grep -qx 'guest: ended with 0' "$WORK/console"
