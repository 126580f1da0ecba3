#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random operations on a file of files/, held against a model; as root from both sides at once, the sandbox's own and
# this one. churn.sh [COUNT [SEED]]: as many as one likes, and the run that failed again.
. "$(dirname "$0")/lib.sh"
count=${1:-10000}
[ -z "$CUBEFS_TEST_LONG" ] || count=${1:-1000000}
start_cubefs
sandbox dev
W=$MNT/dev/files/workspace
T=$MNT/dev/files/tmp
inner=()
[ "$TEST_UID" -ne 0 ] || inner=(-i "$(inside_root dev)/tmp")
check "$CUBEFS_BUILD_DIR/tests/posix/posix-churn" -s "${2:-1}" -n "$count" ${inner[@]+"${inner[@]}"} "$T"

# and from inside, past the mount, as the other side of the same file system
cp "$CUBEFS_BUILD_DIR/tests/posix/posix-churn" "$W/"
check_match "$(run dev "./posix-churn -s ${2:-2} -n $((count / 10)) /workspace")" 'as the model'
