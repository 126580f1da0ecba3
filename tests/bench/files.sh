#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures files/ beside the overlay below it and what a user would pick instead, in one run: the sandbox's overlay
# itself (native), the same through cubefs, through bindfs, and through sshfs from this machine; for copies, as root, an
# engine's `docker cp` too. An ordinary user, whose data is served, cannot reach the overlay: his native is a directory on
# the same disk. It builds what it needs, and takes away all that it made, whatever happens.
#
#     tests/bench/files.sh [ROW ...]      ROW: one of the list below; all of them unless named
#
# CUBEFS_BUILD_DIR: where to build (build/bench), or what another user has built; CUBEFS_BENCH_RUNS: runs of each row, whose median is shown (5);
# CUBEFS_BENCH_MIB: size of the large file (1024); CUBEFS_BENCH_SMALL: small files (20000); CUBEFS_BENCH_REPO: files of
# the repository (5000); CUBEFS_BENCH_TAR: files of the archive (30000); CUBEFS_BENCH_PLACES: which of native, cubefs,
# bindfs, sshfs and docker; CUBEFS_BENCH_NPM: the package that npm installs (express). Figures of a busy machine mean little:
# the load stands above the table. Where a row's work failed there is `failed` for its time, why is said, and the script
# ends with 1.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
BUILD=${CUBEFS_BUILD_DIR:-$ROOT/build/bench}
RUNS=${CUBEFS_BENCH_RUNS:-5}
MIB=${CUBEFS_BENCH_MIB:-1024}
SMALL=${CUBEFS_BENCH_SMALL:-20000}
REPO=${CUBEFS_BENCH_REPO:-5000}
TAR=${CUBEFS_BENCH_TAR:-30000}
NPM=${CUBEFS_BENCH_NPM:-express}
read -ra PLACES <<<"${CUBEFS_BENCH_PLACES:-native cubefs bindfs sshfs docker}"

ROWS=(seqwrite seqread randread randwrite mmap create stat read unlink clone status untar find rg make npm sqlite bigin bigout treein treeout)

. "$ROOT/cmake/debian.sh"
. "$HERE/lib.sh"
. "$HERE/others.sh"
. "$HERE/places.sh"
. "$HERE/files_rows.sh"

[ "$#" -gt 0 ] || set -- "${ROWS[@]}"
known_rows files "$@"
debian_install "${DEBIAN_BUILD[@]}" "${DEBIAN_RUN[@]}" "${DEBIAN_BENCH[@]}" "${DEBIAN_BENCH_FILES[@]}" >&2 || exit 1
workplace
trap 'places_down; cleanup' EXIT
build && mount_up && places_up || exit 1

echo "# $(machine); median of $RUNS"
echo "# ms; in brackets the time as a multiple of native's; others: how many times faster cubefs is"
files_head
for row; do
	row_run "$row"
done
exit "$FAILED"
