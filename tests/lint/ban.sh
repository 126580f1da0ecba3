#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls of ban.table, and words that say that something is unfinished.
. "$(dirname "$0")/lib.sh"

mapfile -t sources < <(lint_files '*.c' '*.h')
lint_report < <(lint_code "${sources[@]}" | awk -f "$LINT"/glob.awk -f "$LINT"/ban.awk part=table "$LINT"/ban.table part=code -)

# The words are spelled so that this script does not find itself.
words='\b(TO''DO|FIX''ME|XX''X)\b|[Nn]ot (yet )?imple''mented'
mapfile -t texts < <(lint_files '*' | grep -vE '^(tests/fuzz/corpus/|tests/servers/contracts/|LICENSE$)')
if [ "${#texts[@]}" -gt 0 ]; then
	lint_report < <(grep -HnIE "$words" "${texts[@]}" | sed 's/^\([^:]*:[0-9]*:\).*/\1 an unfinished thing/')
fi
lint_end
