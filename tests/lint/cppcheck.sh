#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cppcheck on every source of a build (cppcheck.sh BUILD_DIR). A suppression stands in the source, with
# its reason (cppcheck-suppress). Off are: resourceLeak and internalAstError (it understands
# neither the cleanup attribute nor statement expressions), readdirCalled (safe on a stream of one's own), and
# a matter of style that it reports uninvited. tests/posix asks for what is wrong, on purpose.
. "$(dirname "$0")/lib.sh"
lint_need cppcheck cppcheck
. "$LINT/database.sh"

lint_report < <(cppcheck --quiet --enable=warning,portability,performance --inline-suppr \
	--suppress=missingInclude --suppress=missingIncludeSystem --suppress=unmatchedSuppression \
	--suppress=resourceLeak --suppress=readdirCalled \
	--suppress=internalAstError --suppress=duplicateAssignExpression \
	--suppress=invalidFunctionArg:tests/posix/* --suppress=leakReturnValNotUsed:tests/posix/* \
	--suppress=memleak:tests/posix/* --suppress=uninitvar:tests/posix/* \
	--library=posix,gnu -j "$(nproc)" --std=c11 -I . -I "$build/generated" \
	-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=314 \
	--template='{file}:{line}: {severity}: {message} [{id}]' "${SOURCES[@]}" 2>&1)
lint_end
