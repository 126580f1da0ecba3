#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The placeholder for CubePod (tests/servers/cubepod.py) does what it says. Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3
start_service cubepod.py
check python3 -B "$SERVERS/proof/cubepod.py" "$SERVICE_URL" "$SERVICE_KEY"
