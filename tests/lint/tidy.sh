#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy, by .clang-tidy, on every source of a build (tidy.sh BUILD_DIR), two at a time.
. "$(dirname "$0")/lib.sh"
lint_need clang-tidy clang-tidy
. "$LINT/database.sh"

lint_report < <(printf '%s\0' "${SOURCES[@]}" |
	xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2>/dev/null |
	grep -E '(warning|error): ' | sed "s|^$PWD/||" | sort -u)
lint_end
