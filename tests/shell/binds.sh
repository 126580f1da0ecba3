#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bind and unbind: directories of this machine in a sandbox. BACKEND, if it is set: of another than the embedded one.
[ -n "${WORK-}" ] || . "$(dirname "$0")/lib.sh"
require python3
start_cubefs
cd "$MNT"
H=$WORK/host
mkdir "$H"
echo here >"$H/f"
sandbox dev
if ! grep -q '^capabilities.* bind' "backends/${BACKEND:-local}/status"; then
	check_match "$(grep 'missing bind' "backends/${BACKEND:-local}/status")" 'owners'
	expect_error EOPNOTSUPP dev/error 'idmapped' put dev/ctl "bind $H /mnt"
	check_not grep -q '^bind ' dev/ctl
	cd /
	exit 0
fi

# both ways, owners included: who binds is root inside
put dev/ctl "bind $H /mnt/dir"
check_eq "$(field dev/status bind./mnt/dir)" "rw $H"
check_eq "$(run dev 'cat /mnt/dir/f; stat -c %u:%g /mnt/dir/f')" $'here\n0:0'
run dev 'echo inside >/mnt/dir/g; mkdir /mnt/dir/d; ln -s f /mnt/dir/l'
check_eq "$(stat -c %u:%g "$H/g" "$H/d" "$H/l" | sort -u)" "$(id -u):$(id -g)"
check_eq "$(cat "$H/g" dev/files/mnt/dir/g)" $'inside\ninside'
echo outside >dev/files/mnt/dir/o
check_eq "$(cat "$H/o"; stat -c %u "$H/o" dev/files/mnt/dir/o)" "outside"$'\n'"$(id -u)"$'\n'"$(id -u)"
check_eq "$(run dev 'cat /mnt/dir/o; stat -c %u /mnt/dir/o')" $'outside\n0'
# no devices, no setuid
run dev 'cp /bin/true /mnt/dir/true; chmod 4755 /mnt/dir/true'
check_match "$(run dev "grep ' /mnt/dir ' /proc/self/mountinfo")" 'nosuid,nodev'
check_not run dev 'umount /mnt/dir' >/dev/null

# below the workspace, blanks in both names, read only
mkdir "$H/a b"
echo ro >"$H/a b/x"
put dev/ctl "bind '$H/a b' '/workspace/c d' ro"
check_eq "$(field dev/status 'bind./workspace/c' || true)" "d ro $H/a b"
check_eq "$(run dev "cat 'c d/x'")" ro
check_not run dev "echo no >'c d/y'" >/dev/null
check_not run dev "rm 'c d/x'" >/dev/null
expect_errno EROFS touch 'dev/files/workspace/c d/y'
check_eq "$(ls "$H/a b")" x

# refused, and nothing has changed
refused() { # ERRNO REGEX WORD...
	local name=$1 regex=$2
	shift 2
	expect_error "$name" dev/error "$regex" put dev/ctl "$*"
}
refused EINVAL absolute bind host /mnt/x
refused ENOENT 'none' bind "$H/none" /mnt/x
refused ENOTDIR '' bind "$H/f" /mnt/x
refused EACCES '/proc' bind /proc/self /mnt/x
for path in x / /proc /sys/x /dev/y /a/../b /a//b /a/; do refused EINVAL 'inside is wanted' bind "$H" "$path"; done
refused EINVAL 'is not ro' bind "$H" /mnt/x rw
refused EINVAL usage bind "$H"
refused EEXIST 'already' bind "$H" /mnt/dir
refused EBUSY 'own directory' bind "$H" /workspace
refused ENOENT 'nothing is bound' unbind /mnt/x
run dev 'ln -s / /astray; mkdir -p /real; ln -s /real /real/back'
refused ELOOP 'link' bind "$H" /astray/etc
refused ELOOP 'link' bind "$H" /astray
check_eq "$(grep -c '^bind\.' dev/status)" 2

# what is open elsewhere in files/ goes on; what is taken away is gone at once
exec 5<dev/files/etc/passwd 6<dev/files/mnt/dir/f
cd dev/files/workspace
put ../../ctl "bind $H /mnt/second"
check_eq "$(ls)" 'c d'
check_eq "$(head -c 4 <&5)" root
cd "$MNT"
check_eq "$(cat dev/files/mnt/second/f)" here
put dev/ctl 'unbind /mnt/second'
check_eq "$(ls -A dev/files/mnt/second)" ''
check_not run dev 'cat /mnt/second/f' >/dev/null 2>&1
check_eq "$(cat <&6)" here
exec 5<&- 6<&-

# moved about inside, under its feet
put dev/ctl "bind $H /deep/er/dir"
run dev 'mv /deep /moved; mkdir -p /deep/er/dir; ln -s /etc /deep/er/l'
check_eq "$(run dev 'cat /moved/er/dir/f')" here
put dev/ctl 'unbind /deep/er/dir'
check_not run dev 'cat /moved/er/dir/f' >/dev/null 2>&1

# stop and start; bound while it is stopped; an end of the daemon, of each kind
put dev/ctl stop
put dev/ctl "bind $H /while/stopped"
check_eq "$(cat dev/files/while/stopped/f dev/files/mnt/dir/f)" $'here\nhere'
put dev/ctl start
check_eq "$(run dev 'cat /while/stopped/f /mnt/dir/f "/workspace/c d/x"')" $'here\nhere\nro'
for end in stop_cubefs kill_cubefs; do
	cd /
	"$end"
	start_cubefs
	cd "$MNT"
	check_eq "$(cat dev/files/mnt/dir/f)" here
	check_eq "$(run dev 'cat /while/stopped/f')" here
	put dev/ctl 'unbind /while/stopped'
	check_not run dev 'cat /while/stopped/f' >/dev/null 2>&1
	put dev/ctl "bind $H /while/stopped"
	put dev/ctl stop
	cd /
	"$end"
	start_cubefs
	cd "$MNT"
	check_eq "$(cat dev/files/mnt/dir/f dev/files/while/stopped/f)" $'here\nhere'
	put dev/ctl start
	check_eq "$(run dev 'cat /mnt/dir/f /while/stopped/f')" $'here\nhere'
	expect_errno EROFS touch 'dev/files/workspace/c d/y'
done

# kept over a restart, not by a fork, which has what lies below it
put dev/ctl restart
check_eq "$(run dev 'cat /mnt/dir/f')" here
put dev/ctl 'fork child'
check_eq "$(grep -c '^bind\.' child/status || true)" 0
check_eq "$(run child 'ls -A /mnt/dir')" ''
run child 'echo mine >/mnt/dir/mine'
check_not test -e "$H/mine"
rmdir child

# a directory that is gone is said, and given up by unbind; one that is paused
put dev/ctl stop
mv "$H" "$WORK/elsewhere"
cd /
stop_cubefs
start_cubefs
cd "$MNT"
expect_error ENOENT dev/error "bind .*$H" put dev/ctl start
check_eq "$(cat dev/files/etc/passwd | head -c 4)" root
mv "$WORK/elsewhere" "$H"
put dev/ctl start
put dev/ctl pause
put dev/ctl "bind $H /paused"
put dev/ctl resume
check_eq "$(run dev 'cat /paused/f')" here
if [ "$TEST_UID" -eq 0 ] && [ -d /proc/sys ] && [ -z "${BACKEND-}" ]; then
	# /proc is of no file system whose owners could be others
	refused EOPNOTSUPP 'other owners' bind /sys /mnt/x
fi

# the end of the sandbox is nothing to the directory
before=$(find "$H" | sort)
rm -rf dev
wait_for 20 eval '[ -z "$(ls -A "$STATE/cubes")" ]'
check_eq "$(find "$H" | sort)" "$before"
cd /
