#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for E2B (tests/servers/e2b.py) is faithful: the official client, an older line of it and the official
# command run a broad script of their own calls against it, and all that passes fits the service's own contracts.
# Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3 node curl
require_clients e2b
start_service e2b.py --check
export E2B_API_URL=$SERVICE_URL E2B_SANDBOX_URL=$SERVICE_URL E2B_API_KEY=$SERVICE_KEY
check env SDK=e2b node "$WORK/proof/e2b.mjs"
# The older line differs in these.
check env SDK=e2b-before node "$WORK/proof/e2b.mjs" start commands background files life pause autoPause snapshots lists

# ---- the command ----

e2b() {
	"$WORK/node_modules/.bin/e2b" "$@"
}
made=$(curl -sSf -H "X-API-Key: $SERVICE_KEY" -H 'Content-Type: application/json' -d '{"templateID": "base", "timeout": 300}' \
	"$SERVICE_URL/v2/sandboxes")
id=$(sed -n 's/.*"sandboxID": "\([^"]*\)".*/\1/p' <<<"$made")
check_match "$(e2b sandbox list --format json)" "\"sandboxId\": *\"$id\""
check_eq "$(e2b sandbox exec "$id" -- sh -c 'echo said; exit 0')" said
check e2b sandbox kill "$id"

check_contracts
