#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is done inside is seen outside when it is said to be done, whatever
# the kernel keeps of names and attributes. Each kind of change, made by a command, a channel's command, a job, through
# the mount and over 9P, is looked at from outside before it and at once after it, many times over.
. "$(dirname "$0")/lib.sh"
require python3
P9=$(cd "$(dirname "$0")/../p9" && pwd)
ROUNDS=40
[ -z "${CUBEFS_TEST_LONG-}" ] || ROUNDS=400

for bad in 'keep = perhaps' 'kept = yes'; do
	printf '[files]\n%s\n' "$bad" >"$WORK/conf"
	check_not cubefs -f --state "$WORK/other" --config "$WORK/conf" "$MNT" 2>"$WORK/said"
	check grep -q "${bad%% =*}" "$WORK/said"
done

# $KEPT: what `status` says; $ASKED: how often the kernel asks for a name that is not there, and is looked up 1000 times.
asked() { # [OPTION...]
	LOG=$WORK/log.asked.$((++ASKS))
	start_cubefs -o debug "$@"
	sandbox dev
	KEPT=$(sed -n "s/^files_kept //p" "$MNT/dev/status")
	python3 - "$MNT/dev/files/workspace" <<-'END'
		import os, sys
		d = os.open(sys.argv[1], os.O_RDONLY)
		for _ in range(1000):
		    assert not os.access("none", os.F_OK, dir_fd=d)
	END
	check rmdir "$MNT/dev"
	stop_cubefs
	ASKED=$(grep -c 'opcode: LOOKUP' "$LOG")
}

ASKS=0
printf '[files]\nkeep = no\n' >"$WORK/conf"
asked --config "$WORK/conf"
check [ "$ASKED" -ge 1000 ]
check_eq "$KEPT" 'no: [files] keep=no'
asked
case $KEPT in
yes) check [ "$ASKED" -lt 500 ] ;;
*) check_match "$KEPT" 'no: .*Linux 6.16' ;;
esac

LOG=$WORK/log.long
start_cubefs --9p unix:"$WORK/9p"
sandbox dev
check python3 -B "$(dirname "$0")/coherence.py" "$P9" "$WORK/9p" "$MNT" "$ROUNDS"
