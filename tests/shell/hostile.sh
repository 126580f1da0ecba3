#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hostile sandbox against tools of this machine, root's too: links and directories that change places while they are
# walked, programs with setuid, archives that lead out, a mount inside that never answers. No file of this machine is
# read or written, nothing hangs. Four seconds of races; a minute with CUBEFS_TEST_LONG.
. "$(dirname "$0")/lib.sh"
require python3 rsync tar
seconds=4
[ -z "$CUBEFS_TEST_LONG" ] || seconds=60
options=()
[ "$TEST_UID" -ne 0 ] || options=(-o allow_other)
start_cubefs ${options[@]+"${options[@]}"}
sandbox dev
D=$MNT/dev
W=$D/files/workspace

# ---- the race ----
CANARY=$WORK/canary
mkdir -p "$CANARY/sub" "$WORK/copies"
echo 'host secret' | tee "$CANARY/secret" "$CANARY/sub/secret" >/dev/null
chmod 640 "$CANARY/secret" "$CANARY/sub/secret"
touch -a -d '2 days ago' "$CANARY/secret" "$CANARY/sub/secret" # whoever reads it moves this
seen() { (cd "$CANARY" && find . -printf '%p %y %m %U:%G %s %T@ %C@ ' -type f -printf '%A@ '); }
before=$(seen)

cp "$(dirname "$0")/race.py" "$W/"
mkdir "$D/jobs/race"
put "$D/jobs/race/cmd" "exec python3 race.py $CANARY"
wait_for 20 test -s "$W/race/swaps"
first=$(cat "$W/race/swaps")

# Each goes on until the time is over; what it says of what it meets is its own matter, hanging is not.
rounds() { # NAME COMMAND
	local n=0 code
	while [ "$SECONDS" -lt "$end" ]; do
		code=0
		timeout -k 5 30 bash -c "$2" >/dev/null 2>&1 || code=$?
		[ "$code" -ne 124 ] && [ "$code" -ne 137 ] || return 1
		n=$((n + 1))
	done
	echo "$1: $n rounds"
}
T=$W/race/walk
C=$WORK/copies
export T C
end=$((SECONDS + seconds))
pids=()
race() {
	rounds "$@" &
	pids+=("$!")
}
race cp 'cp -rL "$T" "$C/cp.$$"; cp -r "$T/dir" "$C/cpdir.$$"'
race rsync 'rsync -aL "$T/" "$C/rsync/"; rsync -a --copy-unsafe-links "$T/" "$C/rsync2/"'
race tar 'tar -C "$T" -chf "$C/t.tar" .; tar -xOf "$C/t.tar" >>"$C/untar"'
race find 'find -L "$T" -type f -exec cat {} + >>"$C/find"; grep -R . "$T" >>"$C/grep"'
race chmod 'chmod -R 777 "$T"; chmod 777 "$T/dir/secret" "$T/file" "$T/a/rise/secret"'
race chown 'chown -R -L 12:34 "$T"; chgrp 12 "$T/dir/secret" "$T/dir/sub/secret"'
race write 'for f in "$T/dir/secret" "$T/dir/sub/secret" "$T/file" "$T/a/rise/secret" "$T/a/b/c/rise/secret" "$T/a/b/c/d/e/rise/secret"; do echo overwritten >"$f"; echo more >>"$f"; truncate -s 3 "$f"; touch "$f"; done'
race make 'echo x >"$T/dir/sub/made"; mkdir "$T/dir/sub/d"; ln "$T/file" "$T/dir/hard"; mv "$T/dir/sub/made" "$T/dir/sub/moved"'
race remove 'rm -f "$T/dir/sub/moved" "$T/dir/hard" "$T/a/rise/sub/secret"; rm -rf "$T/dir/sub/d" "$T/a/b/c/rise/sub"'
for pid in "${pids[@]}"; do wait "$pid" || fail 'a tool hangs'; done

check_eq "$(cat "$D/jobs/race/exit")" - 'the job that races'
last=$(cat "$W/race/swaps")
echo "swaps: $((last - first)) times eight"
[ "$((last - first))" -ge 20 ] || fail "there was no race: $(tail -n 3 "$D/jobs/race/output")"
check_eq "$(seen)" "$before" 'what is on the host'
check_not grep -rq 'host secret' "$C"
put "$D/jobs/race/ctl" kill
check_eq "$(cat <>"$D/jobs/race/exit")" 143

# ---- archives that lead out ----
python3 - "$WORK/evil.tar" "$CANARY" <<'E2'
import io, sys, tarfile
with tarfile.open(sys.argv[1], 'w') as t:
    def add(name, type=tarfile.REGTYPE, link=''):
        i = tarfile.TarInfo(name)
        i.type, i.linkname, i.size = type, link, 5 if type == tarfile.REGTYPE else 0
        t.addfile(i, io.BytesIO(b'evil\n') if i.size else None)
    add('../../../../../../../../../..' + sys.argv[2] + '/secret')
    add(sys.argv[2] + '/secret')
    add('out', tarfile.SYMTYPE, sys.argv[2])
    add('out/secret')
    add('up', tarfile.SYMTYPE, '../' * 30 + sys.argv[2][1:])
    add('up/sub/secret')
    add('hard', tarfile.LNKTYPE, sys.argv[2] + '/secret')
E2
mkdir "$W/unpacked"
cp "$WORK/evil.tar" "$W/"
(cd "$W/unpacked" && tar -xf "$WORK/evil.tar") 2>/dev/null || true
(cd "$W/unpacked" && python3 -c 'import sys, tarfile
for m in tarfile.open(sys.argv[1]):
    if not m.name.startswith(("/", "..")) and m.name != "hard":
        try: tarfile.open(sys.argv[1]).extract(m)
        except OSError: pass' "$WORK/evil.tar") 2>/dev/null || true
run dev 'mkdir u2; cd u2; tar -P -xf ../evil.tar 2>/dev/null' || true
check_eq "$(seen)" "$before" 'what is on the host after the archives'
run dev 'cd /workspace'

# ---- setuid and devices have no effect here ----
flags=$(awk -v mnt="$MNT" '$2 == mnt { print "," $4 "," }' /proc/self/mounts)
check_match "$flags" ,nosuid,
check_match "$flags" ,nodev,
run dev 'cp /usr/bin/id id; chmod 4755 id; chmod 755 .'
check_match "$(stat -c %a "$W/id")" '^4755$'
if [ "$TEST_UID" -eq 0 ]; then
	check_eq "$(setpriv --reuid 12345 --regid 12345 --clear-groups "$W/id" -u)" 12345 'a program with setuid'
fi

# ---- nothing can be mounted inside, so nothing can hide what is shown ----
run dev 'mkdir m; echo below >m/below'
check_not run dev 'mount -t tmpfs none m'
check_not run dev 'mount --bind /etc m'
check_not run dev 'unshare --user --map-root-user --mount true'
check_not run dev 'unshare --mount true'
check_eq "$(run dev 'python3 - 2>&1 <<E3
import ctypes, errno
c = ctypes.CDLL(None, use_errno=True)
for call in (lambda: c.mount(b"none", b"m", b"tmpfs", 0, None), lambda: c.syscall(428, -100, b"m", 1),
             lambda: c.syscall(430, b"tmpfs", 0), lambda: c.unshare(0x10000000), lambda: c.unshare(0x20000)):
    print(call(), errno.errorcode.get(ctypes.get_errno()))
E3
')" "$(printf '%s\n' '-1 EPERM' '-1 EPERM' '-1 EPERM' '-1 EPERM' '-1 EPERM')" 'mount, open_tree, fsopen, namespaces'
check_eq "$(cat "$W/m/below")" below
for dir in proc sys dev; do
	check_eq "$(find "$D/files/$dir" -mindepth 1 | head -n 3)" '' "files/$dir"
done

# ---- a mount inside that never answers ----
run dev 'mkdir hang below; mkdir below/hang'
if [ "$TEST_UID" -eq 0 ]; then
	root=$(inside_root dev)
	python3 - "${root%/root}" "$WORK/hanging" <<'E2' &
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
fds = [os.open('/dev/fuse', os.O_RDWR) for _ in range(2)]
told = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
ns = os.open(sys.argv[1] + '/ns/mnt', os.O_RDONLY)
assert libc.setns(ns, 0) == 0, ctypes.get_errno()
for fd, where in zip(fds, ('/workspace/hang', '/workspace/below/hang')):
    options = 'fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other' % fd
    if libc.mount(b'hang', where.encode(), b'fuse', 0, options.encode()) != 0:
        os.write(told, b'errno %d\n' % ctypes.get_errno())
        sys.exit(1)
os.write(told, b'mounted\n')
time.sleep(1000)
E2
	hanging=$!
	on_exit kill "$hanging"
	wait_for 20 test -s "$WORK/hanging"
	check_eq "$(cat "$WORK/hanging")" mounted
	mkdir "$D/jobs/stuck"
	put "$D/jobs/stuck/cmd" 'ls /workspace/hang' # one inside hangs in it
	for i in $(seq 300); do # more than the daemon has threads
		timeout 30 stat "$W/hang" "$W/below/hang" >/dev/null &
		stats[i]=$!
	done
	for pid in "${stats[@]}"; do wait "$pid" || fail 'a stat hangs'; done
	check timeout 20 ls -l "$W" "$W/hang" "$W/below/hang" >/dev/null
	check_eq "$(timeout 20 find "$W/below" | wc -l)" 2
	check_eq "$(timeout 20 ls -A "$W/hang")" '' 'the directory below the mount'
	check timeout 20 touch "$W/hang/below" # what is mounted is the inside's alone
	check timeout 20 cp -r "$W/below" "$WORK/below"
	check timeout 20 df "$W/hang" >/dev/null
	check timeout 20 cat "$D/status" >/dev/null
	check_eq "$(run dev 'echo well')" well
fi

# whatever hangs in there, the sandbox goes, and another is made
check timeout 60 rmdir "$D"
wait_for 60 eval '! grep -q "^dev " "$MNT/list"'
sandbox next
check_eq "$(run next 'echo well')" well
check_eq "$(seen)" "$before" 'what is on the host at the end'
