#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for E2B (tests/servers/e2b.py) is faithful: the official client, an older line of it and the official
# command run a broad script of their own calls against it, and all that passes fits the service's own contracts.
# Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3 node curl
for dir in "$CUBEFS_BUILD_DIR/node" "$CUBEFS_BUILD_DIR/../node"; do
	[ ! -d "$dir/node_modules/e2b" ] || NODE=$dir
done
[ -n "${NODE-}" ] || skip 'the npm package e2b is not there: tests/run.sh installs tests/servers/package.json below build/'

start_service e2b.py --check
export E2B_API_URL=$SERVICE_URL E2B_SANDBOX_URL=$SERVICE_URL E2B_API_KEY=$SERVICE_KEY
# Packages are looked for beside the script, and those are below build/.
cp -r "$SERVERS/proof" "$WORK"
ln -s "$NODE/node_modules" "$WORK/node_modules"
for sdk in e2b e2b-before; do
	SDK=$sdk node "$WORK/proof/e2b.mjs" || fail "$sdk against the server: $(cat "$WORK/service.err")"
done

# ---- the command ----

e2b() {
	"$NODE/node_modules/.bin/e2b" "$@"
}
made=$(curl -sSf -H "X-API-Key: $SERVICE_KEY" -H 'Content-Type: application/json' -d '{"templateID": "base", "timeout": 300}' \
	"$SERVICE_URL/v2/sandboxes")
id=$(sed -n 's/.*"sandboxID": "\([^"]*\)".*/\1/p' <<<"$made")
check_match "$(e2b sandbox list --format json)" "\"sandboxId\": *\"$id\""
check_eq "$(e2b sandbox exec "$id" -- sh -c 'echo said; exit 0')" said
check e2b sandbox kill "$id"
check_eq "$(e2b sandbox list --format json | tr -d ' \n')" '[]'

# ---- the contracts ----

found=$(curl -sSf "$SERVICE_URL/_test/violations")
check_match "$found" '"looked": [1-9][0-9]{2}'
check_match "$found" '"violations": \[\]' 'what differs from the contracts'
