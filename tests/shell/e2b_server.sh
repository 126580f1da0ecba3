#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for E2B by itself: what no client of the service's shows, its faults, and that it notices what differs
# from the contracts. Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3
start_service e2b.py --check
check python3 -B "$SERVERS/proof/wire.py" "$SERVICE_URL" "$SERVICE_KEY"
