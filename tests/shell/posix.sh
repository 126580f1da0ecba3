#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files/ is what POSIX and Linux say of a file system: the suite of tests/posix runs on it and, inside the sandbox, on
# the overlay itself. What is other than there is in cubefs-files(5), and nothing else; what is there is other indeed.
. "$(dirname "$0")/lib.sh"
SUITE=$CUBEFS_BUILD_DIR/tests/posix/posix-suite
[ -x "$SUITE" ] || fail "$SUITE is not built"
[ -n "$CUBEFS_TEST_LONG" ] || export CUBEFS_POSIX_DIRECTORY=5000 # of 100,000 files else
options=()
[ "$TEST_UID" -ne 0 ] || options=(-o allow_other) # root's cases become another user
start_cubefs "${options[@]}"
sandbox dev
D=$MNT/dev

listed=$(sed -n '/^\.Ss Differences from a local file system/,/^\.Ss Channels/s/^\.It Cm //p' \
	"$(dirname "$0")/../../docs/cubefs-files.5" | sort)
[ -n "$listed" ] || fail 'the manual lists nothing'
if [ "$TEST_UID" -ne 0 ]; then # who has no passthrough
	listed=$(grep -vx open.append_taken <<<"$listed")
fi

wrong() { # FILE: cases with a wrong check
	sed -n 's/^wrong \([^:]*\):.*/\1/p' "$1" | sort -u
}
ran() { # FILE
	sed -n 's/^\(ok\|wrong\) \([^:]*\):.*/\2/p' "$1" | sort -u
}

mkdir "$D/files/tmp/outside" "$D/files/tmp/inside"
inner=()
[ "$TEST_UID" -ne 0 ] || inner=(-i "$(inside_root dev)/tmp/outside")
"$SUITE" ${inner[@]+"${inner[@]}"} "$D/files/tmp/outside" >"$WORK/outside" || true
cp "$SUITE" "$D/files/tmp/"
run dev "CUBEFS_POSIX_DIRECTORY=${CUBEFS_POSIX_DIRECTORY-} /tmp/posix-suite /tmp/inside" >"$WORK/inside" || true

for side in outside inside; do # all of it has run
	numbers=$(tail -n 1 "$WORK/$side")
	check_match "$numbers" '^[0-9]+ cases, [0-9]+ checks, [0-9]+ wrong$' "$side"
	[ "${numbers%% *}" -ge 100 ] || fail "only ${numbers%% *} cases have run $side"
	echo "$side: $numbers"
	bad=$(comm -23 <(wrong "$WORK/$side") - <<<"$listed")
	[ -z "$bad" ] || fail "$side, and not in the manual:"$'\n'"$(grep ^wrong "$WORK/$side" | grep -F "$bad")"
done
stale=$(comm -12 - <(comm -23 <(ran "$WORK/outside") <(wrong "$WORK/outside")) <<<"$listed")
[ -z "$stale" ] || fail "listed in the manual, and right: $stale"
