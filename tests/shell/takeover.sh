#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The worker is killed, again and again, under whatever may be going on: the mount stays, and nobody notices.
# Fifteen times under load, which is what CI has the time for; a hundred times with CUBEFS_TEST_LONG=1.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/loads.sh"
allow_log 'warning supervise the worker ended \(signal 9\): another one takes over'
start_cubefs --9p "unix:$WORK/9p"
sandbox dev
D=$MNT/dev
F=$D/files/tmp

# ---- what is open stays open ----

echo first >"$F/appended"
exec 5>>"$F/appended"
exec 6<>"$D/exec"
exec 7<"$D/workspace"
exec 8<>"$MNT/clone"
read -r made <&8
echo 'echo one; echo two' >&6
wait_for 10 test -d "$F"
echo unlinked >"$F/unlinked"
exec 9<"$F/unlinked"
rm "$F/unlinked"
mkfifo "$WORK/go"
# A command that is written in two halves, with a death between them.
exec 4>"$D/exec"
env printf 'echo whole; ' >&4
mkdir "$F/cwd"
cd "$F/cwd"
# A file that has no name, in what is mounted and in the root.
python3 - "$D/files/workspace" "$F" >"$WORK/nameless" 3<>"$WORK/go" <<'E2' &
import os, sys
fds = [os.open(d, os.O_TMPFILE | os.O_RDWR, 0o600) for d in sys.argv[1:]]
for fd in fds:
    os.write(fd, b'before ')
print('open', flush=True)
os.read(3, 1)
for fd in fds:
    os.write(fd, b'after')
    assert os.pread(fd, 20, 0) == b'before after'
    assert os.fstat(fd).st_nlink == 0
E2
nameless=$!
wait_for 10 grep -qs open "$WORK/nameless"
kill_worker
echo >"$WORK/go"
wait "$nameless" || fail "the nameless files: $(cat "$WORK/nameless")"
echo second >&5
check_match "$(tail -n 1 "$MNT/error")" 'the worker ended \(signal 9\), and another one took over'
check_eq "$(cat "$F/appended")" $'first\nsecond' 'the appended file'
check_eq "$(cat <&9)" unlinked 'the unlinked file'
check_eq "$(pwd -P)" "$(realpath "$F/cwd")"
touch here
check_eq "$(ls)" here 'the working directory'
check test -d "$MNT/$made"
kill_worker
env printf 'echo command' >&4
exec 4>&-
check_eq "$(cat "$D/exec")" $'whole\ncommand' 'a command written in halves'
cd "$WORK"
exec 5>&- 6>&- 7>&- 8>&- 9>&-
rmdir "$MNT/$made"

# ---- what waits goes on waiting ----

exec 6<>"$D/exec"
echo 'i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo "line $i"; sleep 0.05; done' >&6
cat <&6 >"$WORK/lines" &
reader=$!
put "$D/ctl" 'wait running 60' &
waiter=$!
put "$D/exec" 'sleep 1; echo ran >>/tmp/ran; echo done' &
runner=$!
for _ in 1 2 3; do
	sleep 0.2
	kill_worker
done
check wait "$reader"
check wait "$waiter"
check wait "$runner"
exec 6>&-
check_eq "$(cat "$WORK/lines")" "$(for i in $(seq 40); do echo "line $i"; done)" 'lines of a channel'
check_eq "$(cat "$F/ran")" ran 'how often it ran'

# ---- what was said of a command is not taken back ----

for n in $(seq 8); do
	wait_for 30 one_worker
	put "$D/exec" "echo out $n; exit 7"
	kill -KILL "$WORKER"
	check_eq "$(cat "$D/exec" "$D/exit")" "out $n"$'\n7'
	wait_for 30 new_worker "$WORKER"
done

# ---- locks are held ----

require flock python3
: >"$F/locked"
exec 5<>"$F/locked"
flock -x 5
kill_worker
check_not flock -n -x "$F/locked" true
exec 5>&-
wait_for 10 flock -n -x "$F/locked" true # a moment after the close

# ---- 9P is served again; a client of the old worker is told that it has none ----

wait_for 30 test -S "$WORK/9p"
check python3 -B - "$(dirname "$0")/../p9" "unix:$WORK/9p" "$(worker)" <<'END'
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from client import Broken, Session
address, worker = sys.argv[2], int(sys.argv[3])
old = Session(address)
assert "dev" in old.ls("/")
os.kill(worker, signal.SIGKILL)
try:
    old.ls("/")
    raise AssertionError("the old connection is served")
except (Broken, OSError):
    pass
new = Session(address)  # nobody is refused meanwhile
assert "dev" in new.ls("/")
new.put("/dev/exec", "echo again\n")
assert new.cat("/dev/exec") == b"again\n"
END
check_eq "$(stat -c %a "$WORK/9p")" 600

# ---- under load ----

mkdir "$WORK/tree"
for i in $(seq 30); do
	mkdir "$WORK/tree/d$i"
	head -c $((i * 1000)) /dev/urandom >"$WORK/tree/d$i/file-with-a-long-name-$i"
	echo "$i" >"$WORK/tree/d$i/s"
done
tar -C "$WORK/tree" -cf "$WORK/tree.tar" .

load_jobs() {
	local n=0
	until stopped; do
		n=$((n + 1))
		mkdir "$D/jobs/j$n" || return 1
		put "$D/jobs/j$n/cmd" "echo $n >>/tmp/jobs; seq 2000" || return 1
		[ "$(cat <>"$D/jobs/j$n/stdout" | cksum)" = "$SEQ" ] || { echo "job $n gave something else"; return 1; }
		[ "$(cat <>"$D/jobs/j$n/exit")" = 0 ] || { echo "job $n failed"; return 1; }
		rmdir "$D/jobs/j$n" || return 1
	done
	echo "$n" >"$WORK/jobs"
}
load_tar() {
	local n=0
	until stopped; do
		n=$((n + 1))
		mkdir "$F/t" || return 1
		tar -C "$F/t" -xf "$WORK/tree.tar" || return 1
		diff -r "$WORK/tree" "$F/t" || return 1
		mv "$F/t" "$F/u" || return 1
		rm -r "$F/u" || return 1
	done
}
SEQ=$(seq 2000 | cksum)
start_loads exec jobs tar append cubes
kill_workers 15
finish_loads
check_eq "$(cat "$F/jobs")" "$(seq "$(cat "$WORK/jobs")")" 'jobs that ran'
