#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sessions of README.md and of the manual pages work as they stand there: every command behind a `$ `
# is run, and where lines follow it, its output must be these (a `...` stands for any text, blanks and line
# ends are one).
. "$(dirname "$0")/lib.sh"
TOP=$(dirname "$0")/../..
PLAYED=0

# Lines "$ COMMAND" and output lines, from a Markdown file's console blocks.
of_markdown() { # FILE
	awk '/^```console$/ { on = 1; next } /^```/ { on = 0 } on' "$1"
}

# The same from the literal displays of a manual page.
of_mdoc() { # FILE
	awk '/^\.Sh / { examples = $2 == "EXAMPLES" } /^\.Bd -literal/ { on = 1; next } /^\.Ed/ { on = 0 } examples && on' "$1" |
		sed 's/\\e/\\/g; s/\\&//g'
}

one_line() {
	tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'
}

same() { # OUTPUT EXPECTED
	local pattern
	pattern=$(sed 's/[][\\*?]/\\&/g; s/\.\.\./*/g' <<<"$2")
	# shellcheck disable=SC2053 # it is a pattern
	[[ $1 == $pattern ]]
}

# The variables here have names that no example uses: it runs in this shell.
play_one() { # COMMAND EXPECTED
	local the_command=$1 the_want the_out the_code=0
	the_want=$(one_line <<<"$2")
	eval "$the_command" >"$WORK/out" 2>&1 || the_code=$?
	the_out=$(sed -E 's/^[^ ]+: line [0-9]+: /bash: /' "$WORK/out" | one_line)
	PLAYED=$((PLAYED + 1))
	if [ -n "$the_want" ]; then
		same "$the_out" "$the_want" || fail "'$the_command' says '$the_out', the example says '$the_want'"
	else
		[ "$the_code" -eq 0 ] || fail "'$the_command' fails with $the_code: $the_out"
	fi
}

play() { # lines of an example on stdin
	local the_line the_command='' the_want='' the_lines
	mapfile -t the_lines
	for the_line in "${the_lines[@]}" '$ '; do
		if [[ $the_line != '$ '* ]]; then
			the_want+=$the_line$'\n'
			continue
		fi
		[ -z "$the_command" ] || play_one "$the_command" "$the_want"
		the_command=${the_line#'$ '}
		the_want=
	done
}

# The examples start and end their daemon themselves; the library sees to what a failure leaves.
MNT=$HOME/cubes
export CUBEFS_STATE_DIR=$STATE
PID_OF[$MNT]=
STATE_OF[$MNT]=$STATE
LOG_OF[$MNT]=$LOG

set +u # as in a user's shell
of_markdown "$TOP/README.md" >"$WORK/readme"
play <"$WORK/readme"
check_not is_mounted "$MNT"

of_mdoc "$TOP/docs/cubefs.1" | sed '/--state/d' >"$WORK/cubefs.1"
play <"$WORK/cubefs.1"
check_not is_mounted "$MNT"

cubefs "$MNT"
cd "$MNT"
of_mdoc "$TOP/docs/cubefs-files.5" >"$WORK/cubefs-files.5"
play <"$WORK/cubefs-files.5"
exec 3>&-
cd /

[ "$PLAYED" -ge 30 ] || fail "only $PLAYED commands were found in the documents"
