#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Peers of 9P that mean harm, or stop in the middle: others are served, and the daemon does not grow.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs --9p "unix:$WORK/9p"
sandbox dev
run dev 'head -c 33554432 /dev/zero >/workspace/big'
check python3 -B "$(dirname "$0")/../p9/hurt.py" "$WORK/9p" "$CUBEFS_PID" "$STATE"
