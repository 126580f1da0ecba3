#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The direction of dependence, read from the #include lines: a folder includes only what layers.table
# allows it, a library's header stands only where libraries.table says, and what is private to a module
# (MODULE_priv.h) stays in its folder and below. The link probes of CMake see calls; this sees types and macros.
. "$(dirname "$0")/lib.sh"

mapfile -t sources < <(lint_files '*.c' '*.h')

lint_report < <(
	lint_code "${sources[@]}" | awk -f "$LINT"/glob.awk -f "$LINT"/layers.awk \
		part=layers "$LINT"/layers.table part=libraries "$LINT"/libraries.table \
		part=names <(printf '%s\n' "${sources[@]}") part=code -
)
lint_end
