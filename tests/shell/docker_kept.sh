#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is kept of containers: templates of checkpoints, builds, copies of volumes, what is left at the engine; and a disk
# that is full.
. "$(dirname "$0")/lib.sh"
require_root
require curl mkfs.ext4 tar

images() { # those that cubefs made, by their tags
	api GET /images/json | { grep -o '"cubefs/[a-z]*:[^"]*"' || true; } | sort | tr '\n' ' '
}
dangling() { # how many have lost their names
	api GET '/images/json?filters=%7B%22dangling%22%3A%5B%22true%22%5D%7D' | { grep -o '"Id":' || true; } | wc -l
}

# ---- a small disk ----
mkdir -p "$WORK/engine/data"
truncate -s 160M "$WORK/disk"
mkfs.ext4 -q "$WORK/disk"
mount -o loop "$WORK/disk" "$WORK/engine/data" 2>"$WORK/why" || skip "no loop devices: $(cat "$WORK/why")"
start_engine docker
start_cubefs --config "$CONF"
cd "$MNT"
sandbox full
run full 'head -c 94371840 /dev/urandom >/srv/big; echo kept >/srv/f' >"$WORK/out"
expect_errno ENOSPC mkdir full/checkpoints/big
check_eq "$(ls full/checkpoints)" ''
check_eq "$(run full 'cat /srv/f')" kept
run full 'rm /srv/big' >"$WORK/out"
mkdir full/checkpoints/small
run full 'echo lost >/srv/f' >"$WORK/out"
put full/ctl 'restore small'
check_eq "$(run full 'cat /srv/f')" kept
rmdir full
wait_for 30 eval '[ "$(boxes)" = 0 ]'
wait_for 30 eval '[ -z "$(images)" ]'
check_eq "$(dangling)" 0
T=$MNT/backends/docker/templates

# ---- templates: of a checkpoint, of steps, of a Dockerfile ----
sandbox dev
run dev 'echo one >/srv/f; echo w >w' >"$WORK/out"
mkdir dev/checkpoints/a
put dev/checkpoints/a/ctl 'template kept'
check_match "$(field "$T/kept/info" source)" 'sandbox:dev/a'
rmdir dev
wait_for 30 eval '[ "$(boxes)" = 0 ]'
put ctl 'create of template=kept'
check_eq "$(run of 'cat /srv/f w; hostname')" $'one\nw\nof'
check_eq "$(cat of/changes)" ''
expect_errno EBUSY rmdir "$T/kept"
echo more >of/workspace/w
put of/ctl reset
check_eq "$(cat of/workspace/w)" more
rmdir of
wait_for 30 eval '[ "$(boxes)" = 0 ]'
wait_for 20 rmdir "$T/kept"
wait_for 30 eval '[ -z "$(images)" ]'

echo copied >"$WORK/file"
mkdir "$T/steps"
cat >"$T/steps/build" <<E2
from cubefs-test
env GREETING='hello there'
run echo "\$GREETING" >/srv/greeting; echo gone >/workspace/gone
copy $WORK/file /srv/file
E2
put "$T/steps/ctl" build
check_eq "$(field "$T/steps/status" state)" ready
check_match "$(cat "$T/steps/log")" .
mkdir "$T/file"
printf 'FROM steps\nRUN rm /srv/file\nCMD ["/bin/true"]\n' >"$T/file/build"
put "$T/file/ctl" build
put ctl 'create of template=steps'
check_eq "$(run of 'cat /srv/greeting /srv/file; ls; echo $GREETING')" $'hello there\ncopied\nhello there'
put ctl 'create of2 template=file'
check_eq "$(run of2 'cat /srv/greeting; ls /srv')" $'hello there\ngreeting'
rmdir of of2
wait_for 30 eval '[ "$(boxes)" = 0 ]'
rmdir "$T/file" "$T/steps"

# ---- volumes: a fork has a copy ----
mkdir volumes/data
put ctl 'create dev volume./data=data label.who=me'
echo before >volumes/data/files/f
run dev 'echo own >/srv/f' >"$WORK/out"
put dev/ctl 'fork child'
echo after >volumes/data/files/f
check_eq "$(run child 'cat /data/f /srv/f')" $'before\nown'
check_eq "$(run dev 'cat /data/f')" after
check_eq "$(field child/status label.who)" me
check_not grep -q '/data' dev/changes
rmdir child
wait_for 30 eval '[ "$(boxes)" = 1 ]'
# a volume stays through restore and reset
mkdir dev/checkpoints/a
put dev/ctl 'restore a'
check_eq "$(run dev 'cat /data/f /srv/f')" $'after\nown'

# ---- what was made of a checkpoint outlives it ----
put ctl 'create child from=dev/a'
rmdir dev/checkpoints/a
wait_for 20 eval '[[ "$(images)" = *cubefs/kept:* ]]'
check_eq "$(run child 'cat /srv/f')" own
mkdir child/checkpoints/b
rmdir child
wait_for 30 eval '[ "$(boxes)" = 1 ]'

cd /
rmdir "$MNT/dev"
wait_for 30 eval '[ "$(boxes)" = 0 ]'
rmdir "$MNT/volumes/data"
