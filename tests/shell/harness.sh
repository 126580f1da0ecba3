#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test library itself: what it must find, it finds.
. "$(dirname "$0")/lib.sh"
HERE=$(cd "$(dirname "$0")" && pwd -P)
MODE=user
[ "$TEST_UID" -ne 0 ] || MODE=root

# Runs a test whose text is on stdin: its code is in CODE, what it said in SAID.
try() {
	{
		printf '. %q/lib.sh\n' "$HERE"
		cat
	} >"$WORK/inner.sh"
	CODE=0
	SAID=$(TMPDIR=$WORK CUBEFS_TEST_DIR='' CUBEFS_TEST_SECONDS=3 "$HERE/as.sh" "$MODE" "$WORK/inner.sh" 2>&1) || CODE=$?
}

try <<<'check_eq a a'
check_eq "$CODE" 0 'a test that passes'

try <<<'check_eq a b letter'
check_eq "$CODE" 1 'a check that fails'
check_match "$SAID" "letter is 'a', expected 'b'"

try <<<'false; true'
check_eq "$CODE" 1 'a command that fails'

try <<<'(exit 3) && true; check_not true'
check_eq "$CODE" 1 'a check_not that fails'

try <<<'wait_for 0.1 false' || true
check_eq "$CODE" 1 'a wait in vain'

try <<<'expect_errno ENOENT cat /dev/null'
check_eq "$CODE" 1 'an expected error that does not come'

try <<<'expect_errno EACCES cat /there/is/no/such/file'
check_eq "$CODE" 1 'another error than the expected one'

try <<<'expect_errno ENOENT cat /there/is/no/such/file; check test -d "$WORK"'
check_eq "$CODE" 0 'the expected error'

try <<<'skip "for this reason"'
check_eq "$CODE" 77 'a skipped test'
check_match "$SAID" '^skip: for this reason$'

try <<<'setsid sleep 1000 &'
check_eq "$CODE" 1 'a process that is left'
check_match "$SAID" 'a process is left: [0-9]+ sleep 1000'

try <<<'on_exit touch "$WORK/log-of-exit"; on_exit rm "$WORK/log-of-exit"; echo "T warning m text" >"$WORK/log"'
check_eq "$CODE" 1 'a warning in the log'
check_match "$SAID" "unexpected in the daemon's log"

try <<<'allow_log "m text"; echo "T warning m text" >"$WORK/log"'
check_eq "$CODE" 0 'a warning that was announced'

try <<<'allow_log "m text"; echo "ERROR: AddressSanitizer: heap-use-after-free" >"$WORK/log"'
check_eq "$CODE" 1 "a sanitizer's report"

if [ "$MODE" = root ]; then
	try <<<'mkdir "$WORK/m"; mount -t tmpfs none "$WORK/m"'
	check_eq "$CODE" 1 'a mount that is left'
	check_match "$SAID" 'a mount is left: .*/m'
fi

try <<<'exec sleep 1000'
check_match "$SAID" 'ended after 3 seconds'
check_eq "$CODE" 143 'a test that hangs'
