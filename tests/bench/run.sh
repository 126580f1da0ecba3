#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures cubefs beside what a user would pick instead, in one run, as root. It builds what it needs, and takes
# away all that it made, whatever happens.
#
#     tests/bench/run.sh [ROW ...]       ROW: one of the list below; all of them unless named
#
# CUBEFS_BUILD_DIR: where to build (build/bench); CUBEFS_BENCH_COUNT: commands for each p50 (200);
# CUBEFS_BENCH_MANY: sandboxes of the row `many` (1000). Figures of a busy machine mean little: the load stands
# above the table.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
BUILD=${CUBEFS_BUILD_DIR:-$ROOT/build/bench}
COUNT=${CUBEFS_BENCH_COUNT:-200}
BENCH=$BUILD/tests/bench/bench-bench

ROWS=(exec exec_crun exec_docker parallel create create_docker pool hundred idle stalled hogs many)

. "$ROOT/cmake/debian.sh"
. "$HERE/lib.sh"
. "$HERE/others.sh"
. "$HERE/rows.sh"

[ "$(id -u)" -eq 0 ] || {
	echo 'tests/bench/run.sh: crun and dockerd beside it need root' >&2
	exit 2
}
[ "$#" -gt 0 ] || set -- "${ROWS[@]}"
for row; do
	declare -F "row_$row" >/dev/null || {
		echo "tests/bench/run.sh: no row '$row'; there are: ${ROWS[*]}" >&2
		exit 2
	}
done
debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" "${DEBIAN_BENCH[@]}" >&2 || exit 1

WORK=$(mktemp -d /tmp/cubefs-bench-XXXXXX)
MNT=$WORK/mnt
PATH=$BUILD/fs:$BUILD:$PATH
trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir "$WORK/state"
build && mount_up || exit 1

printf '# %s, %s processors, load %s\n' "$(uname -sr)" "$(nproc)" "$(cut -d ' ' -f 1-3 /proc/loadavg)"
line what measured target ''
for row; do
	"row_$row"
done
