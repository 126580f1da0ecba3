#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lint scripts find what they are for: each is run on a small tree with one thing wrong.
. "$(dirname "$0")/lib.sh"

TREE=$(mktemp -d) || exit 2
trap 'rm -rf "$TREE"' EXIT

put() { # FILE LINE...: a file of the tree, with its tag
	local file=$TREE/$1
	mkdir -p "$(dirname "$file")"
	shift
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' "$@" >"$file"
}

# Runs a script on the tree, which must find something that matches, or nothing (REGEX empty).
expect() { # SCRIPT REGEX
	local out
	out=$(LINT_TOP=$TREE "$LINT/$1.sh" 2>&1)
	if [ -z "$2" ]; then
		[ -z "$out" ] || echo "$1.sh: finds something where nothing is: $out"
	elif ! grep -qE "$2" <<<"$out"; then
		echo "$1.sh: does not find '$2', says: $out"
	fi
	rm -rf "${TREE:?}"/*
}

check_layers() {
	put backends/base/a.h '#include <stdint.h>'
	put ctl/b.c '#include "backends/base/a.h"' '#include "ctl/c.h"'
	put ctl/c.h
	expect layers ''
	put ctl/c.h
	put backends/base/a.c '#include "ctl/c.h"'
	expect layers 'backends/base/a.c:2: backends/base may not include ctl/c.h'
	put backends/local/l.h
	put backends/mem/m.c '#include "backends/local/l.h"'
	expect layers 'backends/mem may not include backends/local/l.h'
	put ctl/x_priv.h
	put fs/tree/t.c '#include "ctl/x_priv.h"'
	expect layers 'ctl/x_priv.h is private to ctl'
	put ctl/u.c '#include <uv.h>'
	expect layers '<uv.h> may be included only in backends/base/loop.c'
	put ctl/n.c '#include "n.h"'
	expect layers 'is not a path from'
	put odd/o.c
	expect layers 'odd/o.c:1: its folder is not in'
}

check_ban() {
	put ctl/a.c 'void f(void) { p->free(p); cube_free(q); } /* malloc(3) */' 'char *s = "system(1)";'
	expect ban ''
	put ctl/a.c 'void f(void) { free(p); }'
	expect ban 'ctl/a.c:2: free is banned here, use cube_free'
	put ctl/a.c 'int f(void) { return atoi (s); }'
	expect ban 'atoi is banned'
	put ctl/a.c "/* TO""DO: later */"
	expect ban 'ctl/a.c:2: an unfinished thing'
}

check_files() {
	put ctl/a.h '#ifndef CUBEFS_CTL_A_H' '#define CUBEFS_CTL_A_H' '#endif'
	expect files ''
	put ctl/a.h '#ifndef A_H' '#define A_H' '#endif'
	expect files 'its include guard is not CUBEFS_CTL_A_H'
	put ctl/a.c 'int x; '
	expect files 'ctl/a.c:2: blanks'
	put ctl/a.c
	printf 'int x;' >>"$TREE/ctl/a.c"
	expect files 'no newline'
	mkdir "$TREE/ctl"
	echo 'int x;' >"$TREE/ctl/a.c"
	expect files 'no SPDX'
	put ctl/a.c
	yes 'int x;' | head -n 900 >>"$TREE/ctl/a.c"
	expect files 'more than 800 lines'
}

check_manual() {
	command -v mandoc >/dev/null || return 0
	put docs/a.5
	sed -i 's|^/\*|.\\" /*|' "$TREE/docs/a.5"
	printf '.Dd November 1, 2026\n.Dt A 5\n.Os\n.Sh NAME\n.Nm a\n.Nd b\n.Sh SEE ALSO\n.Xr cubefs-gone 7\n' >>"$TREE/docs/a.5"
	expect manual 'refers to cubefs-gone\(7\), which does not exist'
	put docs/a.5
	expect manual 'docs/a.5:'
}

lint_report < <(check_layers; check_ban; check_files; check_manual)
lint_end
