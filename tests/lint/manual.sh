#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mandoc on every manual page, and no reference from one to a page of ours that does not exist.
. "$(dirname "$0")/lib.sh"
lint_need mandoc mandoc

mapfile -t pages < <(lint_files 'docs/*.[1-9]')
[ "${#pages[@]}" -gt 0 ] || lint_end

# ERRORS in section 5 is what files that act have.
lint_report < <(mandoc -T lint -W warning "${pages[@]}" 2>&1 | sed 's/^mandoc: //' | grep '^docs/' |
	grep -vF 'unexpected section: Sh ERRORS')

lint_report < <(awk '
	match($0, /^\.Xr cube[^ ]* [0-9]/) {
		split($0, word, " ")
		page = "docs/" word[2] "." word[3]
		if ((getline line < page) < 0)
			print FILENAME ":" FNR ": refers to " word[2] "(" word[3] "), which does not exist"
		close(page)
	}' "${pages[@]}")
lint_end
