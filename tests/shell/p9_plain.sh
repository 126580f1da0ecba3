#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plain 9P2000 by another project's client, if it is there: py9p, of the package python-9p.
. "$(dirname "$0")/lib.sh"
require python3
python3 -c 'import py9p' 2>/dev/null || skip 'the Python package python-9p is not installed'
start_cubefs --9p "unix:$WORK/9p"
sandbox dev
check python3 -B "$(dirname "$0")/../p9/plain.py" "$WORK/9p" "$MNT"
