#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test server for E2B (tests/servers/e2b.py) is faithful: the official client, and an older line of it, run a broad
# script of their own calls against it. Nothing here is about cubefs itself.
. "$(dirname "$0")/lib.sh"
require python3 node
SERVERS=$(dirname "$0")/../servers
for dir in "$CUBEFS_BUILD_DIR/node" "$CUBEFS_BUILD_DIR/../node"; do
	[ ! -d "$dir/node_modules/e2b" ] || NODE=$dir
done
[ -n "${NODE-}" ] || skip 'the npm package e2b is not there: tests/run.sh installs tests/servers/package.json below build/'

mkdir "$WORK/top"
python3 -B "$SERVERS/e2b.py" --top "$WORK/top" --ready "$WORK/address" 2>"$WORK/server.err" &
server=$!
on_exit kill -TERM "$server"
wait_for 20 test -s "$WORK/address"
E2B_API_URL=$(cat "$WORK/address")
export E2B_API_URL E2B_SANDBOX_URL=$E2B_API_URL E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567
# Packages are looked for beside the script, and those are below build/.
cp -r "$SERVERS/proof" "$WORK"
ln -s "$NODE/node_modules" "$WORK/node_modules"
for sdk in e2b e2b-before; do
	SDK=$sdk node "$WORK/proof/e2b.mjs" || fail "$sdk against the server: $(cat "$WORK/server.err")"
done

kill "$server"
wait "$server" || fail "the server ended with $?"
EXITS=()
check_eq "$(cat "$WORK/server.err")" '' 'what the server said'
check_eq "$(ls -A "$WORK/top")" '' 'what the server left'
