#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes: directories that outlive sandboxes, shared by those that have them.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
cd "$MNT"

# made, shown, renamed, removed
mkdir volumes/keep
check_eq "$(ls volumes/keep)" $'files\ninfo'
check_eq "$(field volumes/keep/info backend)" local
check_match "$(field volumes/keep/info created)" '^20..-..-..T..:..:...*Z$'
check_eq "$(field volumes/keep/info used_by)" -
wait_for 10 eval '[[ $(field volumes/keep/info size) =~ ^[0-9]+$ ]]'
expect_errno EEXIST mkdir volumes/keep
for name in .hidden -dash 'a b' "$(printf '%065d' 1)"; do
	expect_error EINVAL error 'no name for a volume' mkdir -- "volumes/$name"
done
expect_errno ENOENT ls volumes/none
expect_errno ENOENT touch volumes/file
mv volumes/keep volumes/kept
check_eq "$(ls volumes)" kept
mkdir volumes/other
expect_errno EEXIST python3 -c 'import os; os.rename("volumes/other", "volumes/kept")'
expect_errno EINVAL python3 -c 'import os; os.rename("volumes/other", "volumes/.x")'
expect_errno EPERM mv volumes/other other
rmdir volumes/other
check_not test -e volumes/other

# its files are files
mkdir volumes/kept/files/d
echo hello >volumes/kept/files/d/f
ln volumes/kept/files/d/f volumes/kept/files/d/hard
check_eq "$(stat -c %h volumes/kept/files/d/f)" 2
check_eq "$(stat -c %u volumes/kept/files/d/f)" "$(id -u)"
ln -s /etc/shadow volumes/kept/files/astray
check_not grep -qs root: volumes/kept/files/astray

# in two sandboxes at once; made where it is missing; read only in one
put ctl 'create a volume=kept volume./srv/new=fresh'
put ctl 'create b volume./data/here=kept,ro'
check_eq "$(ls volumes)" $'fresh\nkept'
check_eq "$(field volumes/kept/info used_by)" 'a b'
check_eq "$(field a/status volume./workspace)" kept
check_eq "$(field b/status volume./data/here)" kept,ro
check_eq "$(run a 'cat d/f; pwd')" $'hello\n/workspace'
check_eq "$(run b 'cat /data/here/d/f')" hello
run a 'echo new >d/new; chown 5:6 d/new; echo x >/srv/new/x'
check_eq "$(run b 'cat /data/here/d/new; stat -c %u:%g /data/here/d/new')" "$(echo new; run a 'stat -c %u:%g d/new')"
check_eq "$(cat volumes/kept/files/d/new b/files/data/here/d/new a/workspace/d/new)" $'new\nnew\nnew'
check_eq "$(cat volumes/fresh/files/x)" x
echo outside >volumes/kept/files/o
check_eq "$(run b 'cat /data/here/o')" outside
check_eq "$(run a 'cat o')" outside

# read only: inside, whatever root tries, and through files/
check_not run b 'echo x >/data/here/no' >/dev/null
check_not run b 'rm -f /data/here/o' >/dev/null
check_not run b 'mount -o remount,rw /data/here' >/dev/null
check_not run b 'mount -o remount,bind,rw /data/here' >/dev/null
check_not run b 'umount /data/here' >/dev/null
expect_errno EROFS touch b/files/data/here/no
expect_errno EROFS rm b/files/data/here/o
check_eq "$(cat volumes/kept/files/o)" outside
# no path of this machine is seen inside
check_not run b "grep -F '$STATE' /proc/self/mountinfo" >/dev/null

# in use
expect_error EBUSY error "volume 'kept' is used by a, b" rmdir volumes/kept
check_eq "$(cat volumes/kept/files/o)" outside
mv volumes/kept volumes/moved # the name alone
check_eq "$(field a/status volume./workspace)" moved
check_eq "$(cat a/workspace/o)" outside
mv volumes/moved volumes/kept

# stop and start, restart of the daemon, kill -9, running and stopped
put a/ctl stop
echo stopped >a/workspace/s
check_eq "$(run b 'cat /data/here/s')" stopped
put a/ctl start
check_eq "$(run a 'cat s')" stopped
put a/ctl stop
for end in stop_cubefs kill_cubefs; do
	cd /
	"$end"
	start_cubefs
	cd "$MNT"
	check_eq "$(ls volumes)" $'fresh\nkept'
	check_eq "$(field volumes/kept/info used_by)" 'a b'
	check_eq "$(cat volumes/kept/files/s)" stopped
	check_eq "$(run b 'cat /data/here/s')" stopped
	echo "$end" >volumes/kept/files/end # b has it read only since before
	check_eq "$(run b 'cat /data/here/end')" "$end"
	put a/ctl start
	check_eq "$(run a 'cat end; echo more >>end')" "$end"
	check_eq "$(run b 'cat /data/here/end')" "$end"$'\nmore'
	expect_errno EROFS touch b/files/data/here/no
	put a/ctl stop
done

# the end of a sandbox is nothing to its volumes, however it comes
rmdir a
rm -rf b
wait_for 10 eval '[ "$(field volumes/kept/info used_by)" = - ]'
check_eq "$(cat volumes/kept/files/d/f volumes/fresh/files/x)" $'hello\nx'
put ctl 'create c volume=kept'
rm -rf ./* 2>/dev/null || true
check_not test -e c
check_eq "$(cat volumes/kept/files/d/f)" hello
expect_errno EPERM rm -r volumes/kept
expect_errno EPERM rm volumes/kept/info
check_eq "$(cat volumes/kept/files/d/f)" hello
check_not find volumes -delete 2>/dev/null
check_eq "$(cat volumes/kept/files/d/f)" hello

# inode numbers: stable, and of no other file
put ctl 'create d volume./v=kept'
check_eq "$(find volumes/kept/files d/files/v d/files/etc -type f -printf '%i %n\n' | awk '$2 == 1 { print $1 }' | sort | uniq -d)" ''
one=$(stat -c %i volumes/kept/files/d/f)
check_eq "$(stat -c %i volumes/kept/files/d/f)" "$one"

# refused, and nothing is left
refused() { # ERRNO REGEX WORD...
	local name=$1 regex=$2
	shift 2
	expect_error "$name" error "$regex" put ctl "create no $*"
	check_not test -e no
}
refused EINVAL 'KEY or KEY,ro' volume=kept,rx
refused EINVAL 'no name for a volume' volume=
refused EINVAL 'no name for a volume' volume=a/b
refused EINVAL 'two volumes at /workspace' volume=kept volume./workspace=fresh
refused EINVAL 'twice' volume=kept volume=kept
for path in '' x / /.. /a/../b /a//b /a/ /proc/x /sys /dev/shm; do
	refused EINVAL 'absolute path inside' "'volume.$path=kept'"
done
refused EINVAL '15 volumes at most' volume./v{1..16}=v1
check_not test -e volumes/v1
# one that cannot be made takes along what it had brought
refused ELOOP 'link' volume./bin=mine volume./good=mine2
check_eq "$(ls volumes)" $'fresh\nkept'

# one inside another, and a name that needs care
put ctl "create n volume./outer=kept volume./outer/inner=fresh 'volume./with blank/ü=fresh,ro'"
check_eq "$(run n "cat /outer/inner/x '/with blank/ü/x'")" $'x\nx'
check_eq "$(cat n/files/outer/inner/x 'n/files/with blank/ü/x')" $'x\nx'
rmdir n d
# removed at once where a sandbox has only just gone; the name is free for another one
rmdir volumes/fresh
mkdir volumes/fresh
check_eq "$(ls -A volumes/fresh/files)" ''
rmdir volumes/fresh volumes/kept
check_eq "$(ls volumes)" ''
wait_for 20 eval '[ -z "$(ls "$STATE/volumes")" ]'
check_eq "$(ls -A "$STATE/backends/local/volumes")" ''

# killed just as one was made or removed: whole, or not there
for _ in 1 2 3; do
	mkdir volumes/k1
	echo x >volumes/k1/files/x
	mkdir volumes/k2
	rmdir volumes/k2
	cd /
	kill_cubefs
	start_cubefs
	cd "$MNT"
	check_eq "$(ls volumes)" k1
	check_eq "$(cat volumes/k1/files/x)" x
	rmdir volumes/k1
done
cd /
