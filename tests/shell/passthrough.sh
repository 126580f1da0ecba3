#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files/: the data of open files, which passes through as root and is served to an ordinary user: what is written on one
# side is there on the other, however it was opened.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
sandbox dev
D=$MNT/dev
W=$D/files/workspace

# which of the two is said
how=$(sed -n 's/^files //p' "$D/status")
if [ "$TEST_UID" -ne 0 ]; then
	check_match "$how" '^served: it needs root'
elif grep -q ' fuse_passthrough_read_iter$' /proc/kallsyms; then # the kernel's own word for it
	check_eq "$how" passthrough
else
	check_match "$how" '^served: this kernel'
fi

# written in pieces, appended, truncated, by both
cd "$W"
python3 - <<'PY'
import os
f = os.open('f', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
os.write(f, b'first'); os.pwrite(f, b'F', 0)
g = os.open('f', os.O_RDONLY)
assert os.read(g, 10) == b'First'
h = os.open('f', os.O_WRONLY | os.O_APPEND)
os.write(h, b'+more'); assert os.fstat(g).st_size == 10
assert os.pread(f, 20, 0) == b'First+more'
t = os.open('f', os.O_RDWR | os.O_TRUNC)
assert os.fstat(g).st_size == 0 and os.pread(f, 10, 0) == b''
os.write(t, b'new'); os.write(h, b'est')
assert os.pread(g, 10, 0) == b'newest'
os.ftruncate(f, 2); assert os.pread(g, 10, 0) == b'ne' and os.fstat(t).st_size == 2
os.truncate('f', 4); assert os.pread(g, 10, 0) == b'ne\0\0'
os.posix_fallocate(f, 0, 8192); assert os.fstat(g).st_size == 8192
os.unlink('f'); os.pwrite(f, b'gone', 0); assert os.pread(g, 4, 0) == b'gone'
again = os.open('/proc/self/fd/%d' % g, os.O_RDWR); os.pwrite(again, b'G', 0); assert os.pread(f, 4, 0) == b'Gone'
src = os.open('src', os.O_RDWR | os.O_CREAT, 0o644); os.write(src, b'x' * 70000)
dst = os.open('dst', os.O_RDWR | os.O_CREAT, 0o644)
assert os.copy_file_range(src, dst, 70000, 0, 0) == 70000 and os.pread(dst, 3, 69997) == b'xxx'
assert os.sendfile(dst, src, 0, 70000) == 70000
PY
rm src dst
# an append by each side in turn, through descriptors that stay open
exec 7>>log
for i in 1 2 3; do
	echo "outside $i" >&7
	run dev "echo inside $i >>log"
done
exec 7>&-
log=$(cat log)
check_eq "$(run dev 'cat log')" "$log" 'a log of both'
check_eq "$(wc -l <<<"$log")" 6

# a file of a lower layer: open for reading when somebody else writes it, outside and inside
cp /bin/cat "$WORK/plain"
for by in outside inside; do
	run dev "cp /etc/profile /workspace/$by.before"
	exec 8<"$D/files/etc/profile"
	if [ "$by" = outside ]; then
		echo "# $by" >>"$D/files/etc/profile"
	else
		run dev "echo '# $by' >>/etc/profile"
	fi
	cat <&8 >"$WORK/read"
	exec 8<&-
	{ cat "$by.before"; echo "# $by"; } >"$WORK/want"
	check cmp "$WORK/read" "$WORK/want"
	check_eq "$(run dev 'tail -n 1 /etc/profile')" "# $by"
	check cmp "$D/files/etc/profile" "$WORK/want"
done

# what is changed inside while it is open outside
echo one >open
exec 8<open
exec 9<>open
check_eq "$(head -c 3 <&8)" one
run dev 'echo changed and longer >open'
check_eq "$(cat <&9)" 'changed and longer'
check_eq "$(stat -L -c %s /proc/self/fd/9)" 19
run dev ': >open'
check_eq "$(stat -L -c %s /proc/self/fd/9)" 0
exec 8<&- 9<&-

# a program can be written and run, on either side
cp /bin/true prog
check ./prog
run dev './prog && cp prog prog2'
check ./prog2
exec 8<prog
cp /bin/false prog.new && mv prog.new prog
check_not ./prog
check cmp /proc/self/fd/8 /bin/true
exec 8<&-

# many are open at once, and none stays
python3 - <<'PY'
import os
fds = [os.open('many%d' % i, os.O_RDWR | os.O_CREAT, 0o644) for i in range(600)]
for i, fd in enumerate(fds): os.write(fd, b'%d' % i)
more = [os.open('many%d' % i, os.O_RDONLY) for i in range(600)]
assert all(os.read(fd, 10) == b'%d' % i for i, fd in enumerate(more))
PY
check_eq "$(run dev 'cat many599; rm many*; ls | grep -c many || :')" 5990

# other files take the place of those that are open
if [ "$TEST_UID" -eq 0 ]; then
	python3 - "$W" "$D" <<'PY'
import mmap, os, subprocess, sys
w, d = sys.argv[1:]
def inside(text):
    open(d + '/exec', 'w').write(text + '\n')
    return open(d + '/exec').read()
fd = os.open(w + '/shared', os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 8192)
m = mmap.mmap(fd, 8192)
m[0:7] = b'outside'
assert inside('head -c 7 shared') == 'outside', 'a mapping of outside, inside'
inside('printf inside | dd of=shared bs=1 seek=4096 conv=notrunc status=none')
assert m[4096:4102] == b'inside', 'a write inside, in a mapping outside'
inside("python3 -c 'import mmap, os; f = os.open(\"shared\", os.O_RDWR); m = mmap.mmap(f, 8192); m[100:103] = b\"map\"' "
       "|| printf map | dd of=shared bs=1 seek=100 conv=notrunc status=none")
assert m[100:103] == b'map' and os.pread(fd, 3, 100) == b'map'
PY
else
	python3 - "$W" "$D" <<'PY'
import mmap, os, sys
w, d = sys.argv[1:]
def inside(text):
    open(d + '/exec', 'w').write(text + '\n')
    return open(d + '/exec').read()
fd = os.open(w + '/shared', os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 8192)
m = mmap.mmap(fd, 8192)
assert m[4096:4102] == bytes(6)
m[0:7] = b'outside'
m.flush()
assert inside('head -c 7 shared') == 'outside', 'a mapping that was synced, inside'
inside('printf inside | dd of=shared bs=1 seek=4096 conv=notrunc status=none')
os.close(os.open(w + '/shared', os.O_RDONLY))
assert m[4096:4102] == b'inside', 'a write inside, in a mapping outside, after an open'
PY
	# while something runs inside there is none; what needs none goes on, and both sides have one file
	mapping() { # FILE: what a shared writable one says
		python3 - "$1" <<'PY'
import errno, mmap, os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(f, 8192)
private = mmap.mmap(f, 8192, mmap.MAP_PRIVATE)
private[0:1] = b'p'
assert os.pread(f, 1, 0) != b'p'
r = os.open(sys.argv[1], os.O_RDONLY)
assert mmap.mmap(r, 8192, mmap.MAP_SHARED, mmap.PROT_READ)[0:1] == os.pread(f, 1, 0)
try:
    m = mmap.mmap(f, 8192, mmap.MAP_SHARED)
    m[0:6] = b'mapped'
    m.flush()
    print('made')
except OSError as e:
    print(errno.errorcode[e.errno])
PY
	}
	gets() { # FILE ANSWER
		[ "$(mapping "$1")" = "$2" ]
	}
	mkdir "$D/jobs/busy"
	put "$D/jobs/busy/cmd" 'exec sleep 1000'
	check_eq "$(mapping shared)" ENODEV 'a mapping beside a job'
	check_eq "$(mapping fresh)" ENODEV 'a mapping of a new file beside a job'
	exec 9<>shared
	run dev 'printf one >shared'
	check_eq "$(dd bs=3 count=1 status=none <&9)" one
	printf two >&9
	check_eq "$(run dev 'cat shared')" onetwo
	run dev 'printf ONE | dd of=shared conv=notrunc status=none'
	check_eq "$(head -c 6 shared)" ONEtwo
	exec 9>&-
	put "$D/jobs/busy/ctl" kill
	check_eq "$(cat <>"$D/jobs/busy/exit")" 143
	check_eq "$(mapping shared)" made 'a mapping when the job has ended'
	check_eq "$(run dev 'head -c 6 shared')" mapped
	run dev 'sleep 1000 & echo $! >left'
	wait_for 20 gets shared ENODEV # what a command left running
	run dev 'kill "$(cat left)"'
	wait_for 20 gets shared made
	# on a volume it is whoever has it
	mkdir "$MNT/volumes/both"
	put "$MNT/ctl" 'create one volume=both'
	put "$MNT/ctl" 'create two volume=both'
	check_eq "$(mapping "$MNT/one/workspace/shared")" made
	mkdir "$MNT/two/jobs/busy"
	put "$MNT/two/jobs/busy/cmd" 'exec sleep 1000'
	check_eq "$(mapping "$MNT/one/workspace/shared")" ENODEV
	check_eq "$(mapping "$MNT/volumes/both/files/shared")" ENODEV
	check_eq "$(mapping shared)" made
	rmdir "$MNT/one" "$MNT/two"
	wait_for 20 rmdir "$MNT/volumes/both"
fi
mkdir "$D/checkpoints/c"
echo before >kept
exec 8<kept
put "$D/ctl" 'restore c'
cd /
check_not test -e "$W/kept"
cat <&8 >/dev/null 2>&1 || true
exec 8<&-
check_eq "$(run dev 'echo fine')" fine
exec 8<"$W/log"
rmdir "$D"
wait_for 10 test ! -e "$D"
exec 8<&-
mkdir "$D"
check_eq "$(run dev 'ls | wc -l')" 0
