#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files/: ordinary tools on a sandbox's file system, seen from both sides.
. "$(dirname "$0")/lib.sh"
require git rsync sqlite3 tar python3
start_cubefs
sandbox dev
D=$MNT/dev
W=$D/files/workspace

check_eq "$(readlink "$D/workspace")" files/workspace
for entry in etc usr bin tmp proc sys dev root home workspace; do check test -e "$D/files/$entry"; done
for entry in proc sys dev; do check_eq "$(ls -A "$D/files/$entry")" '' "files/$entry"; done

# what is written on one side is there on the other
echo outside >"$W/a"
check_eq "$(run dev 'cat a; echo inside > b')" outside
check_eq "$(cat "$W/b")" inside
check_eq "$(run dev 'stat -c %u:%g a b' | sort -u)" 0:0 'owner inside'
run dev 'chown 1234:99 b; chmod 640 b; touch -d "2001-02-03 04:05:06.789012345 UTC" b'
check_eq "$(stat -c '%a %.Y' "$W/b")" '640 981173106.789012345'
[ "$TEST_UID" -ne 0 ] || check_eq "$(stat -c '%u:%g' "$W/b")" 1234:99
check_eq "$(stat -c %u "$W/a")" "$TEST_UID" 'owner outside'

# every operation
cd "$W"
mkdir -p dir/sub; echo x >dir/f; mv dir/f dir/sub/g; ln dir/sub/g dir/hard; ln -s sub/g dir/soft
check_eq "$(cat dir/hard dir/soft)" $'x\nx'
check_eq "$(stat -c %h dir/hard)" 2
check_eq "$(stat -c %i dir/hard)" "$(stat -c %i dir/sub/g)" 'inode of a hard link'
echo more >>dir/hard
check_eq "$(cat dir/soft)" $'x\nmore'
truncate -s 1G sparse; check_eq "$(du -k sparse | cut -f 1)" 0; check_eq "$(stat -c %s sparse)" 1073741824
echo tail >>sparse; check_eq "$(tail -c 5 sparse)" tail
cp --sparse=always sparse sparse2; check cmp sparse sparse2
[ "$(du -k sparse2 | cut -f 1)" -le 64 ] || fail 'a sparse copy is not sparse'
rm sparse sparse2
touch "$(printf 'n%.0s' {1..255})"; rm "$(printf 'n%.0s' {1..255})"
expect_errno ENAMETOOLONG touch "$(printf 'n%.0s' {1..256})"
name=$'\001\n\377 "\\'; echo odd >"$name"; check_eq "$(cat "$name")" odd; rm "$name"
expect_errno EEXIST mkdir dir
expect_errno ENOTEMPTY rmdir dir
expect_errno ENOENT cat nothing
expect_errno ENOTDIR cat a/b
expect_errno EISDIR bash -c 'echo x > dir'
ln -s nowhere dangling; expect_errno ENOENT cat dangling
mkdir moved; mv dir moved/; check_eq "$(cat moved/dir/soft)" $'x\nmore'; mv -T moved/dir dir2
mv -n a b 2>/dev/null || true; check_eq "$(cat a)" outside
python3 - <<'E2'
import os, fcntl, mmap
fd = os.open('u', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.unlink('u')
os.write(fd, b'unlinked'); os.ftruncate(fd, 4)
assert os.fstat(fd).st_size == 4 and os.fstat(fd).st_nlink == 0
assert os.pread(fd, 10, 0) == b'unli'
os.fchmod(fd, 0o640); os.utime(fd, (1, 2)); assert os.fstat(fd).st_mtime == 2
os.close(fd)
with open('holes', 'wb') as f:
    f.seek(1 << 20); f.write(b'data')
fd = os.open('holes', os.O_RDWR)
assert os.lseek(fd, 0, os.SEEK_DATA) > 0
os.posix_fallocate(fd, 0, 4096)
fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.setxattr('holes', 'user.test', b'value')
assert os.getxattr('holes', 'user.test') == b'value' and 'user.test' in os.listxattr('holes')
m = mmap.mmap(fd, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
assert m[0] == 0
E2
for i in $(seq 1 500); do : >"many$i"; done; check_eq "$(ls | grep -c ^many)" 500; rm many*
cd /

# locks hold across
run dev 'touch lock; (flock 9; echo > /tmp/held; sleep 1.5) 9>lock &'
wait_for 5 test -e "$D/files/tmp/held"
check_not flock -n "$W/lock" true
check flock "$W/lock" true

# inode numbers: unique in the mount, stable
sandbox other
check_not test "$(stat -c %i "$W/a")" = "$(stat -c %i "$MNT/other/files/etc/passwd")"
check_not test "$D/files/etc/passwd" -ef "$MNT/other/files/etc/passwd"
i=$(stat -c %i "$W/a"); ls -f "$W" >/dev/null; check_eq "$(stat -c %i "$W/a")" "$i"
check_eq "$(ls -i "$W" | awk '$2 == "a" { print $1 }')" "$i" 'd_ino'

# git, tar, rsync, sqlite
cd "$W"
git init -q repo; cd repo
git config user.email t@example.org; git config user.name t
for i in $(seq 50); do echo "$i" >"f$i"; done
git add .; git commit -qm one
check_eq "$(git status --porcelain)" ''
ln -s f1 link; git add link; git commit -qm two; check_eq "$(git status --porcelain)" ''
git clone -q . ../clone; check diff -r --exclude=.git . ../clone
check git -C ../clone fsck --no-progress 2>/dev/null
cd ..
tar -C repo -cf "$WORK/t.tar" .; mkdir untar; tar -C untar -xf "$WORK/t.tar"; check diff -r repo untar
rsync -a repo/ "$WORK/rs/"; check_eq "$(rsync -ani --no-o --no-g repo/ "$WORK/rs/")" ''
rsync -a "$WORK/rs/" back/; check diff -r repo back
sqlite3 db 'create table t(x); insert into t values (1), (2);'
check_eq "$(sqlite3 db 'select sum(x) from t')" 3
cd /
if run dev 'command -v git >/dev/null'; then
	check_eq "$(run dev 'cd repo && git -c safe.directory=* status --porcelain')" ''
fi

# fifos, sockets and devices made inside have no effect outside, and hang nobody
run dev 'cd /workspace; mkfifo fifo; mknod dev c 1 3 2>/dev/null || true'
check test -p "$W/fifo"
check_not timeout 5 cat "$W/fifo" 2>/dev/null
check_not timeout 5 bash -c "echo x >'$W/fifo'" 2>/dev/null
check_eq "$(stat -f -c %T "$W" 2>/dev/null | wc -l)" 1
