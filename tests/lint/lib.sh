# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the lint scripts share: the list of files, and the way findings are told. Each script is run
# from anywhere, prints one line a finding (FILE:LINE: sentence) and fails if there was one.
set -u
LINT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 2
cd "${LINT_TOP:-$LINT/../..}" || exit 2 # LINT_TOP: another tree, for the test of these scripts
LC_ALL=C
export LC_ALL

LINT_FINDINGS=0

# Files of the project that match one of the patterns (git pathspecs), new ones that are not added yet
# too; in an unpacked archive without git, all that is there.
lint_files() {
	if [ -e .git ] && command -v git >/dev/null; then
		git ls-files -co --exclude-standard -- "$@" | sort -u | while IFS= read -r f; do
			[ -f "$f" ] && printf '%s\n' "$f"
		done
		return
	fi
	local pattern
	for pattern in "$@"; do
		find . -path ./build -prune -o -type f -path "./$pattern" -print
	done | sed 's|^\./||' | sort -u
}

# FILE:LINE:CODE for each line, without comments, and with empty strings.
lint_code() {
	[ "$#" -gt 0 ] || return 0
	awk -f "$LINT/code.awk" "$@"
}

# Counts and prints a finding on each line of stdin.
lint_report() {
	local line
	while IFS= read -r line; do
		printf '%s\n' "$line"
		LINT_FINDINGS=$((LINT_FINDINGS + 1))
	done
}

lint_skip() {
	printf 'skip: %s\n' "$*"
	exit 77
}

lint_need() {
	command -v "$1" >/dev/null || lint_skip "$1 is not installed (Debian: $2)"
}

lint_end() {
	if [ "$LINT_FINDINGS" -gt 0 ]; then
		printf '%s: %d finding(s)\n' "$(basename "$0")" "$LINT_FINDINGS"
		exit 1
	fi
	exit 0
}
