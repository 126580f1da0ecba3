#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for OpenSandbox (tests/servers/opensandbox.py) is faithful: the official client runs a broad script of
# its own calls against it, and all that passes fits the contracts. Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3 node curl
require_clients @alibaba-group/opensandbox
start_service opensandbox.py --check
export SERVICE_URL SERVICE_KEY
check node "$WORK/proof/opensandbox.mjs"
check_contracts
