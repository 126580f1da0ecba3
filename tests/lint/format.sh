#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-format, by .clang-format. The major version is pinned, since versions differ in what they print.
. "$(dirname "$0")/lib.sh"

tool=clang-format-14
command -v "$tool" >/dev/null || tool=clang-format
lint_need "$tool" clang-format-14
case $("$tool" --version) in
*'version 14.'*) ;;
*) lint_skip "clang-format is $("$tool" --version | grep -o '[0-9.]*' | head -n 1), not 14" ;;
esac

mapfile -t sources < <(lint_files '*.c' '*.h')
[ "${#sources[@]}" -gt 0 ] || lint_end
lint_report < <("$tool" --dry-run "${sources[@]}" 2>&1 | grep -E '^[^ ].*: (warning|error):' |
	sed -E 's/:[0-9]+: (warning|error): .*//' | sort -t : -k 1,1 -k 2,2n | sort -t : -k 1,1 -u -s |
	sed 's/$/: not as clang-format has it, from here on/')
lint_end
