#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds and runs all suites, and ends with one line of numbers:
#
#     tests/run.sh [SUITE ...]         SUITE: dev release fuzz tsan lint (all of them unless named)
#
# dev      gcc, address and undefined sanitizers: everything but the lints
# release  gcc, optimised and fortified: unit and conformance tests
# fuzz     clang, the same sanitizers and libFuzzer: unit and conformance tests, the corpora replayed
# tsan     gcc, thread sanitizer: unit, conformance and stress tests
# lint     clang without sanitizers: clang-tidy, cppcheck and the scripts of tests/lint
#
# As root the shell tests run twice: as root, and as an ordinary user, `cubetest`, who is made if
# missing. Without root those of root are skipped, each with its reason.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
. cmake/debian.sh

ALL=(dev release fuzz tsan lint)
TEST_USER=cubetest
PASSED=0 FAILED=0 SKIPPED=0
FUSE_MODE=

say() {
	printf '\n== %s\n' "$*"
}

failed() { # a failure that is no test's
	printf 'FAILED: %s\n' "$*"
	FAILED=$((FAILED + 1))
}

packages() {
	say 'packages'
	debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" "${DEBIAN_TEST[@]}" || {
		echo 'tests/run.sh: packages are missing' >&2
		exit 1
	}
}

# What is no package of Debian's: below build/, for these tests alone, and for the python3 that they find (as.sh).
python_packages() {
	local wanted=tests/p9/requirements.txt there=build/python
	cmp -s "$wanted" "$there/installed" && return
	rm -rf "$there"
	if PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin python3 -m pip install -q \
		--disable-pip-version-check --root-user-action ignore --target "$there" -r "$wanted"; then
		cp "$wanted" "$there/installed"
	else
		failed "pip cannot install what $wanted names: check the network and the package index"
	fi
}

# Official clients of services, for the tests against the servers in tests/servers. The same, of npm. They want a newer
# node than Debian 12 has: where there is none, npm has that, too.
node_packages() {
	local wanted=tests/servers/package.json there=build/node node=()
	cmp -s "$wanted" "$there/installed" && return
	rm -rf "$there"
	command -v npm >/dev/null || debian_install npm || return
	node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null ||
		node=("node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@20")
	mkdir -p "$there" && cp "$wanted" "$there"
	if npm install --prefix "$there" --silent --no-audit --no-fund --no-package-lock --ignore-scripts "${node[@]}"; then
		cp "$wanted" "$there/installed"
	else
		failed "npm cannot install what $wanted names: check the network and the registry"
	fi
}

# Ordinary users mount through /dev/fuse; its mode is put back at the end.
open_fuse() {
	[ -c /dev/fuse ] || modprobe fuse 2>/dev/null
	[ -c /dev/fuse ] || return
	FUSE_MODE=$(stat -c %a /dev/fuse)
	chmod 666 /dev/fuse
}

# shellcheck disable=SC2317 # by the trap
restore_fuse() {
	[ -z "$FUSE_MODE" ] || chmod "$FUSE_MODE" /dev/fuse
}

make_user() {
	if ! id "$TEST_USER" >/dev/null 2>&1; then
		useradd --create-home --shell /bin/bash "$TEST_USER" || {
			failed "the user $TEST_USER cannot be made"
			return
		}
	fi
	grep -q "^$TEST_USER:" /etc/subuid 2>/dev/null ||
		echo "note: $TEST_USER has no range in /etc/subuid: one user inside its sandboxes"
}

prepare() {
	packages
	python_packages
	node_packages
	[ "$(id -u)" -eq 0 ] || return
	say 'machine'
	trap restore_fuse EXIT
	trap 'exit 130' INT TERM HUP
	open_fuse
	make_user
	echo "kernel $(uname -r), $(nproc) processors, /dev/fuse was ${FUSE_MODE:-not there}"
}

# The arguments that a suite has besides its preset.
configure_args() {
	case $1 in
	release) echo -DCUBEFS_WERROR=ON ;;
	esac
}

ctest_args() {
	case $1 in
	dev) echo '-LE ^(lint|bench)$' ;;
	release) echo '-L ^(unit|conformance)$' ;;
	esac
}

# The thread sanitizer of gcc 12 needs what more random bits in addresses than this take away.
wrapper() {
	local bits
	bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
	[ "$1" = tsan ] && [ "$bits" -gt 28 ] && echo 'setarch -R'
}

# Adds up a JUnit file of ctest; names of what was skipped, with the reason, go to build/skipped.
count() { # SUITE FILE
	local pass fail skip
	read -r pass fail skip < <(awk -v suite="$1" -v list=build/skipped -f tests/junit.awk "$2")
	PASSED=$((PASSED + ${pass:-0}))
	FAILED=$((FAILED + ${fail:-0}))
	SKIPPED=$((SKIPPED + ${skip:-0}))
	printf '%s: %s passed, %s failed, %s skipped\n' "$1" "${pass:-0}" "${fail:-0}" "${skip:-0}"
	[ "${fail:-0}" -gt 0 ]
}

run_suite() {
	local suite=$1 junit=$PWD/build/$1/junit.xml log=build/$1.log began=$SECONDS
	say "$suite: configure and build (log: $log)"
	# shellcheck disable=SC2046 # words
	if ! cmake --preset "$suite" $(configure_args "$suite") >"$log" 2>&1 ||
		! cmake --build --preset "$suite" --parallel "$(nproc)" -- -k 0 >>"$log" 2>&1; then
		grep -E -A 3 ' error: |undefined reference|CMake Error|ld: ' "$log" | head -n 60
		failed "$suite does not build"
		return
	fi
	echo "built in $((SECONDS - began)) s"
	began=$SECONDS
	rm -f "$junit"
	# shellcheck disable=SC2046
	# Deadlines of tests are generous, but a machine may stand still for longer: what fails is run once more, and the
	# log shows both.
	$(wrapper "$suite") ctest --preset "$suite" $(ctest_args "$suite") --parallel "$(nproc)" \
		--repeat until-pass:2 --output-junit "$junit"
	local code=$?
	if [ ! -s "$junit" ]; then
		failed "$suite: ctest ran nothing"
	elif ! count "$suite" "$junit" && [ "$code" -ne 0 ]; then
		failed "$suite: ctest ended with $code"
	fi
	echo "ran in $((SECONDS - began)) s"
}

# A test that must run may not be skipped: tests/must-run has patterns of names. Those of root are not
# looked at where an ordinary user runs this.
check_skipped() {
	local pattern suite name reason
	[ -s build/skipped ] || return
	say 'skipped'
	while IFS=$'\t' read -r suite name reason; do
		printf '%s: %s: %s\n' "$suite" "$name" "$reason"
		while read -r pattern; do
			case $pattern in '' | '#'*) continue ;; esac
			[ "$(id -u)" -eq 0 ] || case $name in shell.root.* | guest.*) continue ;; esac
			# shellcheck disable=SC2254 # it is a pattern
			case $name in $pattern) failed "$name must run (tests/must-run: $pattern)" ;; esac
		done <tests/must-run
	done <build/skipped
}

main() {
	local suite
	[ "$#" -gt 0 ] || set -- "${ALL[@]}"
	for suite in "$@"; do
		case " ${ALL[*]} " in *" $suite "*) ;; *)
			echo "tests/run.sh: there is no suite '$suite' (${ALL[*]})" >&2
			exit 2
			;;
		esac
	done
	prepare
	mkdir -p build
	: >build/skipped
	for suite in "$@"; do
		run_suite "$suite"
	done
	check_skipped
	printf '\n%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
	[ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}

main "$@"
