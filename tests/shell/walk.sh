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
# Whatever else there can be: a volume, a template of one's own, a pool, exposed ports, a checkpoint, metrics.
B=$MNT/backends/local
put "$MNT/ctl" 'create more volume=kept volume./ro=kept,ro label.a=b'
mkdir -p "$WORK/root/etc" "$B/templates/t" "$B/pools/p"
echo text >"$WORK/root/etc/name"
put "$B/templates/t/ctl" "import $WORK/root"
put "$B/templates/t/aliases" other-name
put "$B/pools/p/template" 'label.pool=yes'
put "$B/pools/p/size" 1
kept() { [ "$(cat "$B/pools/p/ready")" = 1 ]; }
wait_for 60 kept
grep -q '^missing ports ' "$B/status" || mkdir "$MNT/dev/ports/8080" "$MNT/more/ports/abstract:x"
mkdir "$MNT/more/checkpoints/cp"
put "$MNT/more/ctl" 'fork forked from=cp'
on_exit eval "wait_for 30 rmdir '$B/templates/t'"

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
	grep -hv "^size " "$MNT/more/checkpoints/cp/info" "$MNT/volumes/kept/info"
	cat "$B/pools/p/"{size,ready,template} "$B/templates/t/info"
}
facts >"$WORK/before"

walk() { # NAME COMMAND...: ends, whatever it says of what vanished or may not be read
	local code=0
	shift
	timeout 250 "$@" >"$WORK/walked" 2>&1 || code=$?
	[ "$code" -ne 124 ] && [ "$code" -ne 137 ] || fail "does not end: $*"
	facts >"$WORK/after"
	diff "$WORK/before" "$WORK/after" || fail "$* changed what it looked at"
}

# All there is but the programs of the machine in files/usr and the like, which say nothing new.
prune=(-name usr -o -name bin -o -name sbin -o -name 'lib*' -o -name opt -o -name etc)
walk find find "$MNT" \( "${prune[@]}" \) -prune -o -print
for entry in dev/jobs/a/stdout more/checkpoints/cp/info more/metrics forked/access backends/local/pools/p/log \
	backends/local/templates/t/build volumes/kept/info list; do
	check grep -qx "$MNT/$entry" "$WORK/walked"
done
walk cat find "$MNT" \( "${prune[@]}" \) -prune -o -type f -exec cat {} +
check grep -qa 'line 1' "$WORK/walked"
walk ls ls -lR "$MNT/dev/jobs" "$MNT/dev/sessions" "$MNT/dev/files/workspace" "$MNT/backends"
walk du du -s --exclude=files "$MNT" "$MNT/backends" "$MNT/more"
walk du du -s "$MNT/dev/files/workspace" "$MNT/dev/files/etc" "$MNT/dev/jobs" "$MNT/more/checkpoints/cp/files/etc"
walk grep grep -r --exclude-dir=usr --exclude-dir=bin --exclude-dir=sbin --exclude-dir='lib*' --exclude-dir=opt --exclude-dir=etc 'line 1' "$MNT"
check grep -q 'jobs/a/stdout:line 1$' "$WORK/walked"

# whole copies of everything beside files/, and of the work
mkdir "$WORK/copies"
mapfile -t parts < <(find "$MNT" -mindepth 2 -maxdepth 2 ! -name files ! -name checkpoints ! -path "$MNT/backends/*")
parts+=("$MNT/more/checkpoints/cp/info" "$MNT/more/checkpoints/cp/changes" "$MNT/backends/local/pools")
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
for d, dirs, names in os.walk(sys.argv[1]):
    if "files" in dirs: dirs.remove("files")
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
