#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other people's programs that are hard on file systems, each of which checks what it reads. A few seconds; with
# CUBEFS_TEST_LONG ten for each stressor, which takes 20 GiB of the disk.
. "$(dirname "$0")/lib.sh"
require stress-ng fio dbench fs_mark
start_cubefs
sandbox dev
W=$MNT/dev/files/tmp/work
mkdir "$W"

# The stressor `symlink` is left out: it makes links to absolute paths of this machine, which are shown as what they
# mean inside.
STRESSORS=(access chdir chmod chown copy-file dentry dir dirdeep dirmany fallocate fiemap file-ioctl filename flock
	fpunch fstat getdent hdd inode-flags io iomix link locka lockf lockofd mknod msync open readahead rename seek
	sendfile sync-file touch utime xattr)
if [ "$TEST_UID" -ne 0 ]; then # these take him for one who is not root, which in here he is
	for i in "${!STRESSORS[@]}"; do
		[[ ! ${STRESSORS[i]} =~ ^(access|chown)$ ]] || unset "STRESSORS[i]"
	done
fi
stress() { # ARGUMENT...
	local code=0
	stress-ng "$@" --temp-path "$W" --verify --quiet >"$WORK/stress" 2>&1 || code=$?
	case $code in # 3: no resources, 4: not to be had on this machine
	0 | 3 | 4) ;;
	*) fail "stress-ng $* ended with $code: $(head -n 5 "$WORK/stress")" ;;
	esac
	check_eq "$(ls -A "$W")" '' "left by $*"
}
if [ -n "$CUBEFS_TEST_LONG" ]; then
	for stressor in "${STRESSORS[@]}"; do stress --"$stressor" 2 --timeout 10; done
else
	all=()
	for stressor in "${STRESSORS[@]}"; do all+=(--"$stressor" 1 --"$stressor"-ops 20); done
	stress "${all[@]}" --timeout 3
fi

size=2m
[ -z "$CUBEFS_TEST_LONG" ] || size=256m
for engine in psync mmap libaio vsync; do
	blocks=(--bsrange=512-32k --bs_unaligned=1)
	[ "$engine" != mmap ] || blocks=(--bsrange=4k-32k)
	fio --name="$engine" --directory="$W" --ioengine="$engine" --rw=randrw "${blocks[@]}" \
		--size="$size" --verify=crc32c --verify_fatal=1 --do_verify=1 --numjobs=2 --fsync=64 \
		--output="$WORK/fio" || fail "fio $engine: $(tail -n 20 "$WORK/fio")"
	rm -r "${W:?}"/*
done
fio --name=rewritten --directory="$W" --rw=write --bs=4k --size="$size" --verify=sha1 --loops=2 --direct=1 \
	--output="$WORK/fio" || fail "fio direct: $(tail -n 20 "$WORK/fio")"
rm -r "${W:?}"/*

seconds=1
[ -z "$CUBEFS_TEST_LONG" ] || seconds=30
for loads in /usr/share/dbench/client.txt /usr/share/doc/dbench/loadfiles/client.txt; do
	[ ! -f "$loads" ] || break
done
check_match "$(dbench -c "$loads" -D "$W" -t "$seconds" 4 2>&1)" 'Throughput [0-9.]+ MB/sec'
rm -rf "${W:?}"/*

count=200
[ -z "$CUBEFS_TEST_LONG" ] || count=10000
cd "$MNT/dev/files/tmp" # it takes short paths only
fs_mark -d work -n "$count" -s 4096 -t 4 -S 1 -l "$WORK/fs_mark" >"$WORK/fs_mark.out" 2>&1 ||
	fail "fs_mark: $? $(tail -n 5 "$WORK/fs_mark.out")"
cd /
check_eq "$(find "$W" -type f | wc -l)" 0 'files left by fs_mark'

# the sandbox and the daemon are well
check_eq "$(run dev 'echo well')" well
