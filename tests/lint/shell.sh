#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script through shellcheck. What the shell tests may do is in their .shellcheckrc; any other
# exception stands in the script, with its reason.
. "$(dirname "$0")/lib.sh"
lint_need shellcheck shellcheck

mapfile -t scripts < <(
	lint_files '*.sh'
	lint_files '.ci/*' 'tests/*' | while IFS= read -r f; do
		case $f in *.sh) continue ;; esac
		head -c 64 "$f" | head -n 1 | grep -aqE '^#!.*\b(ba|da|k)?sh\b' && printf '%s\n' "$f"
	done
)
[ "${#scripts[@]}" -gt 0 ] || lint_end
lint_report < <(shellcheck -x -P SCRIPTDIR -f gcc -e SC1091 -- "${scripts[@]}" 2>&1)
lint_end
