#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What status, list and info.json say of what nobody asked for: the template, the limits in force.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
sandbox dev
D=$MNT/dev

info() { # FILE KEY...: a value in it
	python3 -c 'import functools, json, sys
print(json.dumps(functools.reduce(lambda o, k: o[k], sys.argv[2:], json.load(open(sys.argv[1])))))' "$@"
}

check_eq "$(field "$D/status" template)" host
check_eq "$(info "$D/info.json" template)" '"host"'
check_eq "$(awk '$1 == "dev" { print $4 }' "$MNT/list")" host

# each default limit by its number, or by the word that none is kept
for name in memory pids cpus disk; do
	limit=$(field "$D/status" "limit.$name")
	json=${name/cpus/cpus_milli}
	if [ "$(info "$D/info.json" capabilities "$name")" = false ]; then
		check_match "$limit" '^none not kept' "$name"
		check_eq "$(info "$D/info.json" limits "$json")" null "$name"
	elif [ "$name" = cpus ] || [ "$name" = disk ]; then
		check_eq "$limit" none
		check_eq "$(info "$D/info.json" limits "$json")" null
	else
		check_match "$limit" '^[1-9][0-9]* kept' "$name"
		check_eq "$(info "$D/info.json" limits "$json")" "${limit%% *}" "$name"
	fi
done

# those of the configuration for new ones; who is there keeps his own
before=$(grep '^limit' "$D/status")
stop_cubefs
printf '[backend local]\nkind = local\nmemory = 300M\npids = 99\n' >"$WORK/conf"
start_cubefs --config "$WORK/conf"
sandbox new
check_eq "$(grep '^limit' "$D/status")" "$before"
if [ "$(info "$MNT/new/info.json" capabilities memory)" = true ]; then
	check_match "$(field "$MNT/new/status" limit.memory)" '^314572800 kept'
	check_eq "$(info "$MNT/new/info.json" limits memory)" 314572800
	put "$MNT/new/ctl" 'set memory=200M'
	check_match "$(field "$MNT/new/status" limit.memory)" '^209715200 kept'
fi
if [ "$(info "$MNT/new/info.json" capabilities pids)" = true ]; then
	check_match "$(field "$MNT/new/status" limit.pids)" '^99 kept'
fi

# root's ids: nobody else's, and the same from then on
if [ "$TEST_UID" -eq 0 ]; then
	base=$(cat "$STATE/backends/local/uid_base")
	check_eq "$(awk -F: -v b="$base" '$2 < b + 65536 && $2 + $3 > b' /etc/subuid /etc/subgid 2>/dev/null)" '' 'overlap'
	check grep -qx " *$base" <(ps -eo uid=)
	stop_cubefs
	start_cubefs
	check_eq "$(cat "$STATE/backends/local/uid_base")" "$base"
	check_eq "$(run dev 'id -u')" 0
fi
