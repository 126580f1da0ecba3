#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One script of operations through the mount and through each dialect of 9P: the same results, line by line.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs --9p "unix:$WORK/9p"
for dialect in 9P2000.L 9P2000.u 9P2000; do
	sandbox fuse
	sandbox nine
	check python3 -B "$(dirname "$0")/../p9/parity.py" "$MNT" "unix:$WORK/9p" "$dialect"
	put "$MNT/ctl" 'destroy fuse nine'
done
