#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for OpenSandbox (tests/servers/opensandbox.py) is faithful: the official client runs a broad script of
# its own calls against it, and all that passes fits the contracts. Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3 node curl
require_clients @alibaba-group/opensandbox
start_service opensandbox.py --check
export SERVICE_URL SERVICE_KEY
node "$WORK/proof/opensandbox.mjs" || fail "the client against the server: $(cat "$WORK/service.err")"
check_contracts
