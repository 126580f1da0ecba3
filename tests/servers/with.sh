#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A service for a command, and its end.
#
#     with.sh e2b COMMAND...    with CUBEFS_TEST_E2B, the lines of a [backend] section for it
#
# What its clients send is held against the service's contracts: with a difference the exit code is 1. 77 where it
# cannot run.
set -u
here=$(cd "$(dirname "$0")" && pwd)

if [ $# -lt 2 ] || [ ! -f "$here/$1.py" ]; then
	echo 'usage: with.sh SERVICE COMMAND...' >&2
	exit 2
fi
if [ "$(id -u)" -ne 0 ] || ! python3 -c 'import jsonschema, yaml' 2>/dev/null; then
	echo 'skipped: the service is started by root alone, with python3-jsonschema and python3-yaml'
	exit 77
fi
dir=$(mktemp -d /tmp/cubefs-service.XXXXXX)
key=e2b_$(printf '%040d' "$$")
chmod 711 "$dir" # its sandboxes are of other ids
mkdir "$dir/top"
printf '%s\n' "$key" >"$dir/key"
python3 -B "$here/$1.py" --top "$dir/top" --ready "$dir/url" --key "$key" --check &
pid=$!
# shellcheck disable=SC2317 # the trap calls it
end() {
	kill "$pid" 2>/dev/null
	wait "$pid"
	rm -rf "$dir"
}
trap end EXIT
for _ in $(seq 300); do
	[ ! -s "$dir/url" ] || break
	sleep 0.1
done
url=$(cat "$dir/url") || exit 1
export CUBEFS_TEST_E2B="url = $url
sandbox_url = $url
api_key_file = $dir/key"
shift
"$@"
code=$?
wrong=$(curl -sSf "$url/_test/violations")
if [[ "$wrong" != *'"violations": []'* ]]; then
	printf 'against the contract: %s\n' "$wrong"
	code=1
fi
exit "$code"
