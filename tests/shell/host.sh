#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What code inside cannot see or do.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
sandbox other
echo "the host's secret" >"$WORK/secret"

inside() { # TEXT: succeeds inside
	check run dev "$1"
}
not_inside() { # TEXT: fails inside
	if run dev "( $1 ) 2>/dev/null" >/dev/null; then fail "worked inside: $1"; fi
}

# the files of the host's users
not_inside "cat $WORK/secret"
check_eq "$(run dev 'ls -A /home /root /mnt /media /srv /var/tmp 2>/dev/null | grep -v : | grep -c . || true')" 0
not_inside "grep -vE '^[^:]*:[*!]' /etc/shadow" # (what is there is made up: nobody has a password)
not_inside 'ls /etc/ssh/*_key'
check_eq "$(run dev 'ls /workspace')" ''
if [ -d /boot ]; then not_inside 'ls /boot/* >/dev/null'; fi
check_eq "$(run dev 'find /etc ! -type l ! -perm -o=r ! -path "/etc/mine*" -newer /proc/1 2>/dev/null | head -n 1')" ''

# no host path is visible
for where in mountinfo mounts environ maps; do
	not_inside "grep -aF '$STATE' /proc/self/$where"
done
not_inside "grep -aF '$STATE' /proc/1/cmdline"
check_eq "$(run dev '{ tr "\0" "\n" < /proc/1/environ; } 2>/dev/null | grep -c cubefs || true')" 0

# other processes, other sandboxes, the network
check_match "$(run dev 'ls /proc | grep -cE "^[0-9]+$"')" '^[1-9]$|^1[0-5]$'
check_eq "$(run dev 'hostname')" dev
not_inside 'kill -9 1; sleep 0.1; ! kill -0 1'
check_eq "$(run dev 'ls /sys/class/net | tr "\n" " "')" 'lo '
inside 'cat /proc/net/dev | grep -q lo'
not_inside 'exec 3<>/dev/tcp/127.0.0.1/22'

# mounting, devices, the kernel
not_inside 'mount -t tmpfs x /mnt'
not_inside 'unshare -Urm true'
not_inside 'mknod /tmp/sda b 8 0 && cat /tmp/sda'
not_inside 'echo b > /proc/sysrq-trigger'
not_inside 'echo 1 > /proc/sys/kernel/panic'
not_inside '[ -n "$(head -c 1 /proc/kcore | tr -d "\0")" ]'
not_inside 'dmesg'
not_inside 'insmod /lib/modules/*/kernel/fs/fat/fat.ko'
not_inside 'chroot /proc/1/root true'
not_inside 'for f in /proc/1/fd/*; do readlink $f && exit 0; done; exit 1'
not_inside 'readlink /proc/1/exe'
not_inside 'cat /proc/1/mem'
check_match "$(run dev 'grep NoNewPrivs /proc/self/status')" '1$'
check_match "$(run dev 'grep Seccomp: /proc/self/status')" '2$'
check_not test "$((0x$(run dev 'awk "/CapBnd/ { print \$2 }" /proc/self/status') & (1 << 21 | 1 << 19)))" -ne 0 # SYS_ADMIN, SYS_PTRACE

# what root inside changes is its own
if [ "$TEST_UID" -eq 0 ]; then
	run dev 'echo changed > /usr/bin/cubefs-test-file; echo hacked >> /etc/passwd; rm -f /bin/true'
	check_not test -e /usr/bin/cubefs-test-file
	check_not grep -q hacked /etc/passwd
	check test -e /bin/true
	check_eq "$(run other 'ls /usr/bin/cubefs-test-file 2>/dev/null; grep -c hacked /etc/passwd; ls /bin/true')" $'0\n/bin/true' || true
	check_eq "$(run dev 'stat -c %u /usr/bin/env')" 0
else
	run dev 'echo changed > /etc/mine'
	check_not test -e /etc/mine
fi

# setuid and devices made inside have no effect outside
run dev 'cp /usr/bin/id ./id; chmod 4755 ./id'
check_match "$(findmnt -no OPTIONS "$MNT")" 'nosuid.*nodev|nodev.*nosuid'

# nobody else gets in
if [ "$TEST_UID" -eq 0 ]; then
	check_not setpriv --reuid 65534 --clear-groups ls "$MNT" 2>/dev/null
fi
check_eq "$(stat -c %a "$STATE")" 700
