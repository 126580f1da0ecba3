#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mandoc on every manual page, and no reference from one to a page of ours that does not exist.
. "$(dirname "$0")/lib.sh"
lint_need mandoc mandoc

mapfile -t pages < <(lint_files 'docs/*.[1-9]')
[ "${#pages[@]}" -gt 0 ] || lint_end

# Of its style messages one is taken out: it knows only OpenBSD's and NetBSD's manuals.
lint_report < <(mandoc -T lint -W style "${pages[@]}" 2>&1 |
	grep -vE 'referenced manual not found|(STYLE|WARNING): (no such RCS|operating system explicitly|RCS id missing)' |
	sed 's/^mandoc: //')

lint_report < <(awk '
	match($0, /^\.Xr cube[^ ]* [0-9]/) {
		split($0, word, " ")
		page = "docs/" word[2] "." word[3]
		if ((getline line < page) < 0)
			print FILENAME ":" FNR ": refers to " word[2] "(" word[3] "), which does not exist"
		close(page)
	}' "${pages[@]}")
lint_end
