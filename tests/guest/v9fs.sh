#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The real Linux client: a guest mounts the tree with v9fs and runs shell tests on it, the ways to mount it (ways.sh)
# among them. All run but those that cubefs-9p(7) lists, each with its reason; with CUBEFS_TEST_LONG set, that is:
# else a few of them.
#
#     v9fs.sh [TEST...]        these
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/lib.sh"
require qemu-system-x86_64 cpio modprobe apt-get dpkg socat openssl
HERE=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=(bash cat cp mv rm ls ln mkdir rmdir stat touch tail head wc cmp diff grep sed awk find sort seq timeout
	tr cut tee dd date sleep env od chmod chown truncate mkfifo readlink realpath basename dirname fold
	tar rsync pgrep setsid id sha256sum xargs printenv uniq split mktemp test printf true false socat cubefs)

# The patterns of names that the manual lists.
not_run() {
	sed -n '/^\.Ss Tests that do not run there/,/^\.El/ s/^\.It Cm //p' "$HERE/../../docs/cubefs-9p.7" | sed 's/ , /\n/g'
}

all_tests() {
	find "$HERE/../shell" -name '*.sh' ! -name lib.sh ! -name loads.sh ! -name as.sh ! -name stage.sh -printf '%f\n' | sed 's/\.sh$//' | sort
}

choose_tests() { # [TEST...]
	local pattern name left
	mapfile -t GUEST_TESTS < <(all_tests)
	while read -r pattern; do
		left=()
		for name in "${GUEST_TESTS[@]}"; do
			# shellcheck disable=SC2053 # it is a pattern
			[[ $name == $pattern ]] || left+=("$name")
		done
		[ "${#left[@]}" -lt "${#GUEST_TESTS[@]}" ] || fail "cubefs-9p(7) lists $pattern, and there is no such test"
		GUEST_TESTS=("${left[@]}")
	done < <(not_run)
	[ -n "${CUBEFS_TEST_LONG-}" ] || GUEST_TESTS=("${SHORT[@]}")
	GUEST_TESTS=(ways "${GUEST_TESTS[@]}")
	[ "$#" -eq 0 ] || GUEST_TESTS=("$@")
}

# What a client of TLS needs goes into the guest, a server's beside it.
make_certificates() {
	local name
	mkdir -p "$WORK/image/etc/9p"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/ca.key" -out "$WORK/ca.pem" -days 2 -subj /CN=ca 2>/dev/null
	for name in server me; do
		openssl req -newkey rsa:2048 -nodes -keyout "$WORK/$name.key" -out "$WORK/$name.csr" -subj /CN=10.0.2.2 2>/dev/null
		openssl x509 -req -in "$WORK/$name.csr" -CA "$WORK/ca.pem" -CAkey "$WORK/ca.key" -CAcreateserial -days 2 \
			-extfile <(echo subjectAltName=IP:10.0.2.2) -out "$WORK/$name.pem" 2>/dev/null
	done
	cp "$WORK"/{ca.pem,me.pem,me.key} "$WORK/image/etc/9p"
	printf '[9p]\ncertificate = %s\nkey = %s\nca = %s\n' "$WORK/server.pem" "$WORK/server.key" "$WORK/ca.pem" >"$WORK/conf"
}

# Programs, the tests, and the list of those that run.
make_image() { # FILE
	local program paths=()
	for program in "${PROGRAMS[@]}"; do
		paths+=("$(type -P "$program")")
	done
	mkdir -p "$WORK/image/tests" "$WORK/image/usr/local/bin"
	ln -s "$(type -P cubefs)" "$WORK/image/usr/local/bin/"
	cp -r "$HERE/../shell" "$WORK/image/tests/"
	cp "$HERE/ways.sh" "$WORK/image/tests/shell/"
	printf '%s\n' "${GUEST_TESTS[@]}" >"$WORK/image/tests/list"
	GUEST_OVERLAY=$WORK/image guest_initrd "$1" "$HERE/tree" "${paths[@]}"
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

SHORT=(tour exec sessions life)
choose_tests "$@"
guest_kernel || skip 'there is no kernel for a guest'
make_certificates
make_image "$WORK/initrd"
PORT=$(free_port)
TLS=$(free_port)
start_cubefs --config "$WORK/conf" --9p "tcp:127.0.0.1:$PORT" --9p "tls:127.0.0.1:$TLS"
guest_boot $((60 + 100 * ${#GUEST_TESTS[@]})) "$WORK/initrd" \
	"tree.host=10.0.2.2 tree.port=$PORT tree.tls=$TLS tree.options=cache=none" \
	-netdev user,id=net -device virtio-net-pci,netdev=net,romfile= | tee "$WORK/console" || true
check_eq "$(failures "$WORK/console")" '' 'what has not passed'
check grep -qx 'guest: ended with 0' "$WORK/console"
