#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plain 9P2000 by another project's client: py9p, of the package python-9p (tests/p9/requirements.txt).
. "$(dirname "$0")/lib.sh"
require python3
for dir in "$CUBEFS_BUILD_DIR/python" "$CUBEFS_BUILD_DIR/../python"; do
	[ ! -d "$dir" ] || export PYTHONPATH=$dir
done
python3 -B -c 'import py9p' 2>/dev/null ||
	skip 'the Python package python-9p is not there: pip install --target build/python -r tests/p9/requirements.txt'
start_cubefs --9p "unix:$WORK/9p"
sandbox dev
check python3 -B "$(dirname "$0")/../p9/plain.py" "$WORK/9p" "$MNT"
