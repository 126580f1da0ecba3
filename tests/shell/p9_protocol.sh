#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 9P2000.L as the protocol's text has it: a client that shares no code with the server.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs --9p "unix:$WORK/9p"
sandbox dev
check python3 -B "$(dirname "$0")/../p9/protocol.py" "unix:$WORK/9p"
