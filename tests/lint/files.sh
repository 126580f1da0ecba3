#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What every file keeps to: the licence tag in its first lines, include guards made of the path, no
# file of more than 800 lines, no blanks at the end of a line, a newline at the end of the file.
. "$(dirname "$0")/lib.sh"

has_tag() { # FILE
	head -n 3 "$1" | grep -q 'SPDX-License-Identifier: Apache-2.0'
}

guard_of() { # FILE
	printf 'CUBEFS_%s' "$1" | tr 'a-z/.-' 'A-Z___'
}

check_tags() {
	local file
	lint_files '*.c' '*.h' '*.sh' '*.awk' '*.cmake' '*CMakeLists.txt' 'docs/*.[1-9]' | while IFS= read -r file; do
		has_tag "$file" || echo "$file:1: no SPDX-License-Identifier: Apache-2.0 in its first lines"
	done
}

check_guards() {
	local file guard
	lint_files '*.h' | while IFS= read -r file; do
		guard=$(guard_of "$file")
		if ! grep -qx "#ifndef $guard" "$file" || ! grep -qx "#define $guard" "$file"; then
			echo "$file:1: its include guard is not $guard"
		fi
	done
}

check_sizes() {
	lint_files '*.c' '*.h' '*.sh' | while IFS= read -r file; do
		lines=$(wc -l <"$file")
		[ "$lines" -le 800 ] || echo "$file:$lines: a file of more than 800 lines: split it"
	done
}

check_ends() {
	lint_files '*.c' '*.h' '*.sh' '*.awk' '*.cmake' '*CMakeLists.txt' '*.md' 'docs/*.[1-9]' |
		while IFS= read -r file; do
			grep -nE '[[:blank:]]+$' "$file" | sed "s|^\([0-9]*\):.*|$file:\1: blanks at the end of the line|"
			[ -z "$(tail -c 1 "$file")" ] || echo "$file:1: no newline at its end"
		done
}

lint_report < <(check_tags; check_guards; check_sizes; check_ends)
lint_end
