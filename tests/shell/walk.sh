#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every tool that reads walks the whole mount while jobs run, and ends; nothing of what they look at changes for it,
# no paused sandbox wakes, and rm -r means rmdir.
. "$(dirname "$0")/lib.sh"
require rsync tar python3
start_cubefs
sandbox dev
sandbox other
sandbox still
run dev 'mkdir -p d/e; echo text >d/e/f; ln -s f d/e/l; ln -s /etc/passwd d/e/abs; mkfifo d/fifo; printf "a\0b" >d/bin' >/dev/null
run other 'true'
run still 'true'
mkdir "$MNT/dev/sessions/side"
put "$MNT/dev/sessions/side/exec" 'cd /tmp'
for n in a b; do
	mkdir "$MNT/dev/jobs/$n"
	put "$MNT/dev/jobs/$n/cmd" 'i=0; while :; do i=$((i+1)); echo "line $i"; echo "err $i" >&2; sleep 0.02; done'
done
mkdir "$MNT/dev/jobs/unused" "$MNT/other/jobs/wait"
put "$MNT/other/jobs/wait/ctl" 'stdin stream'
put "$MNT/other/jobs/wait/cmd" cat
paused=no
if put "$MNT/still/ctl" pause 2>/dev/null; then paused=yes; fi

# What the tools must not change: states, jobs, sessions, use, what waits.
facts() {
	local c
	for c in dev other still; do
		sed -n '/^\(state\|reason\|generation\|started\|doing\|label\|limit\)/p' "$MNT/$c/status"
		ls "$MNT/$c/jobs" "$MNT/$c/sessions"
		cat "$MNT/$c/exit"
		head -n 1 "$MNT/$c/env"
	done
	cut -d ' ' -f 1-4 "$MNT/list"
	ls "$MNT"
	grep -c '"event":"\(created\|running\|paused\|resumed\|stopped\|job\.started\|error\)"' "$MNT/events"
	cat "$MNT/other/jobs/wait/exit" "$MNT/dev/jobs/unused/status"
}
facts >"$WORK/before"

walk() { # NAME COMMAND...: ends, whatever it says of what vanished or may not be read
	local code=0
	shift
	timeout 250 "$@" >"$WORK/walked" 2>&1 || code=$?
	[ "$code" -ne 124 ] && [ "$code" -ne 137 ] || fail "does not end: $*"
	facts >"$WORK/after"
	check cmp "$WORK/before" "$WORK/after"
}

# All there is but the programs of the machine in files/usr and the like, which say nothing new.
prune=(-name usr -o -name bin -o -name sbin -o -name 'lib*' -o -name opt -o -name etc)
walk find find "$MNT" \( "${prune[@]}" \) -prune -o -print
check grep -q "^$MNT/dev/jobs/a/stdout$" "$WORK/walked"
walk cat find "$MNT" \( "${prune[@]}" \) -prune -o -type f -exec cat {} +
check grep -qa 'line 1' "$WORK/walked"
walk ls ls -lR "$MNT/dev/jobs" "$MNT/dev/sessions" "$MNT/dev/files/workspace" "$MNT/backends"
walk du find "$MNT" -maxdepth 2 ! -name files -exec du -s {} +
walk du du -s "$MNT/dev/files/workspace" "$MNT/dev/jobs"
walk grep grep -r --exclude-dir=usr --exclude-dir=bin --exclude-dir=sbin --exclude-dir='lib*' --exclude-dir=opt --exclude-dir=etc 'line 1' "$MNT"
check grep -q 'jobs/a/stdout:line 1$' "$WORK/walked"

# whole copies of everything beside files/, and of the work
mkdir "$WORK/copies"
mapfile -t parts < <(find "$MNT" -mindepth 2 -maxdepth 2 ! -name files ! -path "$MNT/backends/*")
mkdir "$WORK/copies/cp"
walk cp cp -r "${parts[@]}" "$WORK/copies/cp"
walk cp cp -r "$MNT/dev/files/workspace" "$WORK/copies/work"
check_eq "$(cat "$WORK/copies/work/d/e/f")" text
walk rsync rsync -r --no-devices --no-specials --exclude=files/ "$MNT/" "$WORK/copies/rsync"
check grep -q '^line 1$' "$WORK/copies/rsync/dev/jobs/a/stdout"
walk tar tar -cf "$WORK/copies/tar" --exclude=files -C "$MNT" .
check tar -tf "$WORK/copies/tar" ./dev/jobs/a/stdout >/dev/null
walk diff diff -r --exclude=files "$MNT/other" "$MNT/still"
walk diff diff -r --exclude=files "$MNT" "$WORK/copies/rsync"
walk python python3 -c 'import os, sys
for d, _, names in os.walk(sys.argv[1]):
    if "/files" in d: continue
    for n in names:
        try: open(os.path.join(d, n), "rb").read()
        except OSError: pass' "$MNT"
[ "$paused" = no ] || check_eq "$(field "$MNT/still/status" state)" paused
put "$MNT/other/jobs/wait/ctl" eof
check_eq "$(cat <>"$MNT/other/jobs/wait/exit")" 0
check_eq "$(cat "$MNT/dev/jobs/a/exit")" -

# rm -r of a sandbox with jobs that run is its rmdir; of all of it, the sandboxes
rm -r "${MNT:?}/dev"
check_not test -e "$MNT/dev"
rm -rf "${MNT:?}"/* 2>/dev/null || true
check_eq "$(cat "$MNT/list")" ''
check test -d "$MNT/backends/local"
sandbox again
check_eq "$(run again 'echo fine')" fine
