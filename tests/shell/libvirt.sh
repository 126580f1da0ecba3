#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Virtual machines as sandboxes: a libvirt that is not there, a life from creation to removal, other states of their disks,
# and daemons that are killed.
. "$(dirname "$0")/lib.sh"
require_root
CONF=$WORK/cubefs.conf

# ---- nobody there ----

printf '[backend libvirt]\nurl = qemu:///system?socket=%s/nobody\naccel = tcg\n' "$WORK" >"$CONF"
start_cubefs --config "$CONF"
expect_error EHOSTUNREACH "$MNT/error" "$WORK/nobody" put "$MNT/ctl" 'create a'
check_not test -e "$MNT/a"
check_match "$(cubefs doctor --config "$CONF" 2>&1 || true)" 'libvirt-daemon-system'
stop_cubefs

# ---- a machine ----

L=$WORK/libvirt
"$(dirname "$0")/../libvirt.sh" up "$L" || exit
on_exit "$(dirname "$0")/../libvirt.sh" down "$L"
{ echo '[backend libvirt]' && cat "$L/conf"; } >"$CONF"
start_cubefs --config "$CONF"
put "$MNT/backends/libvirt/ctl" refresh
check_match "$(cat "$MNT/backends/libvirt/status")" 'QEMU [0-9.]+'
check_match "$(cat "$MNT/backends/libvirt/status")" 'TCG'
sandbox dev label.who=me env.COLOR=blue memory=160M
check_eq "$(run dev 'cat /etc/name; id -u; pwd; hostname; echo $COLOR')" $'small\n0\n/workspace\ndev\nblue'
check_eq "$(run dev 'cd /tmp; X=1')" ''
check_eq "$(run dev 'pwd; echo $X')" $'/tmp\n1'
put "$MNT/dev/exec" 'exit 7'
check_eq "$(cat "$MNT/dev/exit")" 7
check_match "$(run dev 'ls /sys/class/net')" '^lo$'

# ---- other states of its disks: what was written counts, synced or not ----

run dev 'echo one >/workspace/f; echo one >/root/f' >/dev/null
mkdir "$MNT/dev/checkpoints/one"
run dev 'echo two >/workspace/f; echo two >/root/f' >/dev/null
mkdir "$MNT/dev/checkpoints/two"
run dev 'echo three >/workspace/f' >/dev/null
put "$MNT/dev/ctl" 'fork child'
check_eq "$(run child 'cat /workspace/f /root/f; hostname')" $'three\ntwo\nchild'
run child 'echo child >/workspace/f' >/dev/null
check_eq "$(run dev 'cat /workspace/f')" three
rmdir "$MNT/child"
put "$MNT/dev/ctl" 'restore one'
check_eq "$(run dev 'cat /workspace/f /root/f')" $'one\none'
rmdir "$MNT/dev/checkpoints/one"
put "$MNT/dev/ctl" 'restore two'
check_eq "$(run dev 'cat /workspace/f /root/f')" $'two\ntwo'

# ---- stopped in order, and what is on its disks ----

run dev 'echo kept >/workspace/g' >/dev/null
put "$MNT/dev/ctl" stop
wait_for 60 state_is dev stopped
put "$MNT/dev/ctl" reset
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat /workspace/f /workspace/g; ls /root')" $'two\nkept'

# ---- a QEMU that answers nothing holds nobody; libvirtd is killed, and commands go on ----

qemu=$(cat "$L/run/qemu/cubefs-$(field "$MNT/dev/status" id).pid")
kill -STOP "$qemu"
check_not timeout -s INT 2 sh -c "echo pause >'$MNT/dev/ctl'"
kill -CONT "$qemu"
wait_for 30 state_is dev paused
put "$MNT/dev/ctl" resume
kill -KILL "$(cat "$L/pid")"
check_eq "$(run dev 'cat /workspace/g')" kept
"$(dirname "$0")/../libvirt.sh" again "$L"
put "$MNT/dev/ctl" pause
put "$MNT/dev/ctl" resume
check_eq "$(run dev 'cat /workspace/g')" kept

# ---- cubefs is killed, and finds it again ----

run dev 'sleep 1000 & echo $! >/tmp/pid' >/dev/null
kill_cubefs
start_cubefs --config "$CONF"
check_eq "$(run dev 'kill -0 "$(cat /tmp/pid)" && cat /workspace/g')" kept

# ---- its machine dies ----

kill -KILL "$qemu"
wait_for 30 state_is dev stopped
rmdir "$MNT/dev"
wait_for 30 eval '[ -z "$(ls -A "$L/box/cubes")" ]'
wait_for 30 eval '[ -z "$(find "$L/box/layers" "$L/box/checkpoints" -type f)" ]'
stop_cubefs
