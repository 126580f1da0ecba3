# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tools that read the compile database: DATABASE is its folder, SOURCES the files in it that are
# the project's own.
build=${1:?build directory}
[ -f "$build/compile_commands.json" ] || lint_skip "no compile_commands.json in $build"
mapfile -t SOURCES < <(
	sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" | sort -u |
		grep -F "$PWD/" | grep -vF "$build/" | sed "s|^$PWD/||"
)
[ "${#SOURCES[@]}" -gt 0 ] || lint_skip "nothing in $build/compile_commands.json"
