#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# put and get: in one step, or not at all.
. "$(dirname "$0")/lib.sh"
require python3 tar xz zstd
start_cubefs
cd "$MNT"
sandbox dev
H=$WORK/host
mkdir -p "$H/sub/deep" "$H/empty"
echo one >"$H/f"
echo two >"$H/sub/deep/g"
printf '#!/bin/sh\necho ran\n' >"$H/run"
chmod 755 "$H/run"
chmod 640 "$H/f"
ln -s sub/deep/g "$H/link"
ln -s /etc/passwd "$H/absolute"
truncate -s 10M "$H/sparse"
echo end >>"$H/sparse"
mkfifo "$H/fifo"

no_stage() { # DIRECTORY: nothing of ours is left in it
	check_eq "$(find "$1" -maxdepth 2 -name '.cubefs-*' 2>/dev/null || true)" ''
}

# a directory: contents, modes, links, holes; devices and fifos are left out; all belongs to root inside
put dev/ctl "put $H /workspace/new/place"
check_eq "$(run dev 'cd /workspace/new/place; cat f link; ./run; stat -c %a:%u:%g f sub; readlink absolute; ls -A')" \
	$'one\ntwo\nran\n640:0:0\n755:0:0\n/etc/passwd\nabsolute\nempty\nf\nlink\nrun\nsparse\nsub'
check_eq "$(run dev 'stat -c %s /workspace/new/place/sparse; tail -c 4 /workspace/new/place/sparse')" $'10485764\nend'
check_eq "$(run dev '[ "$(stat -c %b /workspace/new/place/sparse)" -lt 2000 ]; echo $?')" 0
check_eq "$(stat -c %Y "$H/f")" "$(run dev 'stat -c %Y /workspace/new/place/f')"

# again: what was there is gone; owner, mode, remove
run dev 'echo old >/workspace/new/place/old; mkdir -p /workspace/cache/x /tmp/more; cd /' >/dev/null
echo three >"$H/f"
put dev/ctl "put $H /workspace/new/place owner=7:8 mode=644 remove=/workspace/cache remove=/tmp/more remove=/tmp/none"
check_eq "$(run dev 'cd /workspace/new/place; cat f; ls old 2>/dev/null | wc -l; stat -c %a:%u:%g f sub sub/deep .; ls -d /workspace/cache /tmp/more 2>/dev/null | wc -l')" \
	$'three\n0\n644:7:8\n755:7:8\n755:7:8\n755:7:8\n0'
no_stage dev/files/workspace

# there is no moment at which it is not whole: an inside that looks all the time
run dev 'cd /' >/dev/null
mkdir dev/jobs/watch
put dev/jobs/watch/cmd 'n=0; while [ ! -e /tmp/stop ]; do cat /workspace/new/place/f >/dev/null || exit 1; n=$((n+1)); done; echo $n'
for i in 1 2 3 4 5 6 7 8; do put dev/ctl "put $H /workspace/new/place"; done
touch dev/files/tmp/stop
check_eq "$(cat <>dev/jobs/watch/exit)" 0

# archives
(cd "$H" && tar cf "$WORK/a.tar" --exclude=fifo . && tar czf "$WORK/a.tgz" --exclude=fifo f sub && tar cJf "$WORK/a.txz" f &&
	tar --zstd -cf "$WORK/a.tzst" f && python3 -c "
import zipfile
with zipfile.ZipFile('$WORK/a.zip', 'w') as z:
    z.write('f'); z.write('sub/deep/g')")
for a in tar tgz txz tzst zip; do
	put dev/ctl "put $WORK/a.$a /srv/from/$a"
	check_eq "$(run dev "cat /srv/from/$a/f")" three
done
check_eq "$(run dev 'cat /srv/from/tar/link /srv/from/zip/sub/deep/g; stat -c %u:%g /srv/from/tgz/sub /srv/from')" $'two\ntwo\n0:0\n0:0'

# hostile archives: refused, and nothing has changed
python3 - "$WORK" <<'E2'
import io, sys, tarfile
def make(name, entries):
    with tarfile.open(sys.argv[1] + '/' + name, 'w') as t:
        for n, kind, arg in entries:
            i = tarfile.TarInfo(n)
            i.type = kind
            if kind == tarfile.REGTYPE:
                i.size = len(arg)
                t.addfile(i, io.BytesIO(arg))
            else:
                i.linkname = arg
                t.addfile(i)
make('up.tar', [('ok', tarfile.REGTYPE, b'x'), ('../up', tarfile.REGTYPE, b'x')])
make('abs.tar', [('/abs', tarfile.REGTYPE, b'x')])
make('link.tar', [('l', tarfile.SYMTYPE, '/tmp'), ('l/x', tarfile.REGTYPE, b'x')])
make('hard.tar', [('h', tarfile.LNKTYPE, '../../etc/passwd')])
make('hardlink.tar', [('l', tarfile.SYMTYPE, '/etc'), ('h', tarfile.LNKTYPE, 'l/passwd')])
open(sys.argv[1] + '/text', 'w').write('no archive\n' * 100)
data = open(sys.argv[1] + '/a.tgz', 'rb').read()
open(sys.argv[1] + '/cut.tgz', 'wb').write(data[:len(data) // 2])
E2
before=$(run dev 'find /srv/from | sort; cat /srv/from/tar/f')
refused() { # ERRNO REGEX WORD...
	local name=$1 regex=$2
	shift 2
	expect_error "$name" dev/error "$regex" put dev/ctl "$*"
}
for a in up.tar abs.tar link.tar hard.tar hardlink.tar text cut.tgz; do refused EINVAL '' put "$WORK/$a" /srv/from/tar; done
refused ENOENT none put "$WORK/none" /srv/from/tar
refused EINVAL absolute put host /srv/from/tar
refused EINVAL 'inside is wanted' put "$H" relative
refused EINVAL 'inside is wanted' put "$H" /proc/x
refused EINVAL 'inside is wanted' put "$H" /
refused EINVAL 'UID:GID' put "$H" /x owner=root
refused EINVAL 'octal' put "$H" /x mode=9
refused EINVAL "no key 'what'" put "$H" /x what=1
refused EINVAL 'users below' put "$H" /x owner=100000000:0
refused EINVAL 'neither' put /dev/null /x
refused EACCES '/proc' put /proc/self/environ /x
refused EBUSY 'mounted' put "$H" /workspace
run dev 'ln -s /srv /astray; ln -s / /srv/from/out' >/dev/null
refused ELOOP 'link' put "$H" /astray/x
refused ELOOP 'link' put "$H" /srv/from/out/x
rm dev/files/srv/from/out
check_eq "$(run dev 'find /srv/from | sort; cat /srv/from/tar/f')" "$before"
no_stage dev/files/srv

# the answer on a channel; a stopped sandbox; a volume, read only
exec 3<>dev/ctl
echo "put $H /srv/answer" >&3
read -r answer <&3
check_match "$answer" '^ok files=[0-9]+ bytes=[0-9]+ skipped=1$'
exec 3<&-
put dev/ctl stop
put dev/ctl "put $H /srv/stopped"
put dev/ctl start
check_eq "$(run dev 'cat /srv/stopped/f')" three
put ctl 'create v volume=kept volume./ro=kept,ro'
put v/ctl "put $H /workspace/in"
check_eq "$(cat volumes/kept/files/in/f)" three
expect_error EROFS v/error 'put' put v/ctl "put $H /ro/no"
rmdir v

# what would use up the rest of the disk that holds the state: refused in the middle, and nothing of it is left
mkdir "$WORK/bomb"
truncate -s 64M "$WORK/bomb/zeros"
printf x | dd of="$WORK/bomb/zeros" bs=1 seek=67000000 conv=notrunc status=none
for packer in gzip xz zstd; do
	tar -C "$WORK/bomb" -cf - zeros | "$packer" >"$WORK/bomb.$packer"
done
head -c 32M /dev/zero >"$WORK/bomb/full"
put ctl 'set disk_reserve=1024T'
for source in bomb bomb.gzip bomb.xz bomb.zstd; do
	expect_error ENOSPC dev/error "put '$WORK/$source': .*No space left" put dev/ctl "put $WORK/$source /srv/answer"
	check_eq "$(find dev/files/srv -maxdepth 1 -name '.cubefs-*')" ''
done
put dev/ctl "put $H /srv/answer" # what is small finds room
put ctl 'set disk_reserve=1G'
rm -r "$WORK/bomb" "$WORK"/bomb.*

# get: a directory and a file, whole, and nothing that could lead or harm a tool here
run dev 'mkdir -p /out/d/e; cd /out; echo x >d/f; echo y >d/e/g; chmod 4755 d/f; ln -s f d/good; ln -s ../f d/e/up; ln -s /etc/passwd d/bad; ln -s ../../out d/worse; ln -s e/../../.. d/sly; mkfifo d/fifo' >/dev/null
exec 3<>dev/ctl
echo "get /out/d $WORK/got" >&3
read -r answer <&3
exec 3<&-
check_match "$answer" '^ok files=5 bytes=4 skipped=4$'
check_eq "$(cd "$WORK/got" && find . | sort | tr '\n' ' ')" '. ./e ./e/g ./e/up ./f ./good '
check_eq "$(cat "$WORK/got/good" "$WORK/got/e/up")" $'x\nx'
check_eq "$(stat -c %a:%u:%g "$WORK/got/f")" "755:$(id -u):$(id -g)"
put dev/ctl "get /out/d/f $WORK/file"
check_eq "$(cat "$WORK/file")" x
echo new >dev/files/out/d/f
put dev/ctl "get /out/d/f $WORK/file"
check_eq "$(cat "$WORK/file")" new
refused EEXIST '' get /out/d "$WORK/got"
refused ENOENT '' get /out/none "$WORK/no"
refused ENOENT '' get /out/d "$WORK/no/such/place"
refused EINVAL 'neither' get /out/d/fifo "$WORK/no"
refused ELOOP '' get /out/d/bad "$WORK/no"
refused ELOOP 'link' get /astray/from "$WORK/no"
refused EINVAL 'absolute' get /out/d no
check_not test -e "$WORK/no"
no_stage "$WORK"

# interrupted: a writer that is killed has changed nothing
mkdir "$WORK/big"
truncate -s 1 "$WORK/big/f"
for i in 1 2 3 4 5 6; do head -c 64M /dev/zero >"$WORK/big/$i"; done
before=$(run dev 'cat /srv/answer/f; ls /srv/answer | wc -l')
python3 - "$WORK" <<'E3'
import os, signal, sys, time
pid = os.fork()
if pid == 0:
    fd = os.open('dev/ctl', os.O_WRONLY)
    os.write(fd, ('put %s/big /srv/answer\n' % sys.argv[1]).encode())
    os._exit(0)
deadline = time.time() + 30
while not any(n.startswith('.cubefs-') for n in os.listdir('dev/files/srv')):
    if os.waitpid(pid, os.WNOHANG)[0] or time.time() > deadline:
        sys.exit(0) # it was too quick to be interrupted
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
E3
wait_for 30 eval '[ -z "$(find dev/files/srv -maxdepth 1 -name ".cubefs-*" 2>/dev/null)" ]'
[ "$(run dev 'cat /srv/answer/f; ls /srv/answer | wc -l')" = "$before" ] || check_eq "$(run dev 'ls /srv/answer | wc -l')" 7

# the daemon is killed in the middle: the next one takes away what had grown
(printf 'put %s /srv/answer2\n' "$WORK/big" >dev/ctl) 2>/dev/null &
writer=$!
wait_for 30 eval '[ -n "$(find dev/files/srv -maxdepth 1 -name ".cubefs-*" 2>/dev/null)" ] || [ -e dev/files/srv/answer2 ]'
cd /
kill_cubefs
wait "$writer" 2>/dev/null || true
start_cubefs
cd "$MNT"
wait_for 30 eval '[ -z "$(find dev/files/srv -maxdepth 1 -name ".cubefs-*" 2>/dev/null)" ]'
check_eq "$(run dev 'cat /srv/stopped/f')" three
cd /
