#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The worker is killed while large directories are listed and taken away: a listing that goes on in the next worker has
# each name once, and a removal finds all that there is.
# Ten times, which is what CI has the time for; a hundred times with CUBEFS_TEST_LONG=1.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/loads.sh"
require python3
allow_log 'warning supervise the worker ended \(signal 9\): another one takes over'
start_cubefs
sandbox dev
D=$MNT/dev
F=$D/files/tmp

# In /etc, of which there is a layer below: what is there is merged. In /tmp there is none.
put "$D/exec" 'mkdir /tmp/plain /tmp/gone; for d in /tmp/plain /etc; do
	(mkdir -p $d; cd $d; seq -f "of-this-test-%g" 3000 | xargs touch) || exit 1; done'
check_eq "$(cat "$D/exit")" 0 'making the directories'

# By a descriptor of its own for each listing, a few names at a time, plain and with what stat says.
load_list() {
	python3 -B - "$WORK/stop" "$F/plain" "$D/files/etc" <<'END'
import os, sys
stop, *dirs = sys.argv[1:]
want = {d: sorted(os.listdir(d)) for d in dirs}
n = 0
while not os.path.exists(stop):
    for d in dirs:
        have = []
        with os.scandir(d) as names:
            for e in names:
                e.stat(follow_symlinks=False)
                have.append(e.name)
        if sorted(have) != want[d]:
            sys.exit(f"{d}: {len(have)} names of {len(want[d])}, {len(set(have))} different")
    n += 1
print(n)
END
}
load_gone() {
	local n=0
	until stopped; do
		n=$((n + 1))
		put "$D/exec" 'cd /tmp/gone; for d in a b; do mkdir $d; (cd $d; seq -f "with-a-long-name-%g" 1500 | xargs touch); done' || return 1
		rm -r "$F/gone/a" "$F/gone/b" || return 1
		[ -z "$(ls -A "$F/gone")" ] || { echo "left: $(ls -A "$F/gone")"; return 1; }
	done
}
put "$D/exec" 'mkdir -p /tmp/gone'
start_loads list gone
kill_workers 10
wait_loads
