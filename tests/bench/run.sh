#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures cubefs beside what a user would pick instead, in one run, as root. It builds what it needs, and takes
# away all that it made, whatever happens.
#
#     tests/bench/run.sh [ROW ...]       ROW: one of the list below; all of them unless named
#
# CUBEFS_BUILD_DIR: where to build (build/bench); CUBEFS_BENCH_COUNT: commands for each p50 (200);
# CUBEFS_BENCH_MANY: sandboxes of the row `many` (1000); CUBEFS_BENCH_ROUNDS: turns of each server of 9P (15);
# CUBEFS_BENCH_MIB: the file that they serve (256). Figures of a busy machine mean little: the load stands
# above the table.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
BUILD=${CUBEFS_BUILD_DIR:-$ROOT/build/bench}
COUNT=${CUBEFS_BENCH_COUNT:-200}
BENCH=$BUILD/tests/bench/bench-bench

ROWS=(exec exec_crun exec_docker parallel create create_docker pool hundred idle stalled hogs
	checkpoint freeze restore fork commit_docker forks twenty reflink many
	p9_read p9_stat p9_walk p9_crowd p9_idle)

. "$ROOT/cmake/debian.sh"
. "$HERE/lib.sh"
. "$HERE/others.sh"
. "$HERE/rows.sh"
. "$HERE/kept_rows.sh"
. "$HERE/p9_rows.sh"

root_only 'crun and dockerd beside it need root'
[ "$#" -gt 0 ] || set -- "${ROWS[@]}"
known_rows row "$@"
debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" "${DEBIAN_BENCH[@]}" >&2 || exit 1
workplace
trap 'xfs_down; cleanup' EXIT
build && mount_up || exit 1

echo "# $(machine)"
line what measured target ''
for row; do
	"row_$row"
done
