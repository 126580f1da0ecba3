#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Templates of images: OCI layouts and archives, what docker save writes; layers, digests, what images say of
# their programs; hostile ones.
. "$(dirname "$0")/lib.sh"
require busybox tar python3
start_cubefs
T=$MNT/backends/local/templates
gone() { rmdir "$1" 2>/dev/null; }
mkdir "$WORK/i"
cp "$(command -v busybox)" "$WORK/i/busybox"
python3 "$(dirname "$0")/image.py" "$WORK/i" || fail 'the images cannot be made'

for source in good good.tar saved.tar nested; do
	name=${source%.tar}
	[ "$source" = "$name" ] || name=$name:tar
	mkdir "$T/$name"
	put "$T/$name/ctl" "import $WORK/i/$source"
	check_eq "$(field "$T/$name/status" state)" ready "state of $source"
	info=$(cat "$T/$name/info")
	check_match "$info" 'fingerprint sha256:[0-9a-f]{64}'
	check_match "$info" 'env GREETING=hello there'
	check_match "$info" 'workdir /srv'
	check_match "$info" 'user 1000:1000'
	check_match "$info" 'entrypoint /bin/sh'
	check_match "$info" 'runs yes'
	check_match "$(cat "$T/$name/log")" 'layer 2 of 2: sha256:'
	sandbox dev "template=$name"
	check_eq "$(run dev 'cat /etc/name; ls -d /gone 2>/dev/null; ls /opaque; cat /was-dir /was-file/inside /usr/lib/through')" \
		$'tiny\nnew\nfile now\ndir now\nthrough'
	check_eq "$(run dev 'echo $GREETING:$PATH:$HOME; pwd; ls -a / | cat' | head -n 2)" $'hello there:/bin:/root\n/workspace'
	check_not test -e "$MNT/dev/files/.wh.gone"
	check_not test -e "$MNT/dev/files/opaque/old"
	check_eq "$(readlink "$MNT/dev/files/bin/sh")" busybox
	rmdir "$MNT/dev"
	# what the create line names wins
	sandbox dev "template=$name" env.GREETING=mine
	check_eq "$(run dev 'echo $GREETING')" mine
	check_match "$(cat "$MNT/dev/env")" 'GREETING=mine'
	rmdir "$MNT/dev"
	put "$T/$name/ctl" "import $WORK/i/$source"
	check_match "$(cat "$T/$name/log")" 'unchanged'
	wait_for 10 gone "$T/$name"
done

# the environment is there again after the daemon's end
mkdir "$T/kept"
memory=64M # an ordinary user may have no control group
can() { ! grep -q "^missing $1 " "$MNT/backends/local/status"; }
can memory || memory=
put "$T/kept/ctl" "import $WORK/i/good.tar ${memory:+memory=$memory} os=linux"
sandbox dev template=kept
stop_cubefs; start_cubefs
T=$MNT/backends/local/templates
wait_for 10 grep -q "^env GREETING" "$T/kept/info" # once the backend was asked
[ -z "$memory" ] || check_match "$(cat "$T/kept/info")" 'memory 67108864'
check_match "$(cat "$T/kept/info")" 'env GREETING=hello there'
check_eq "$(run dev 'echo $GREETING')" 'hello there'
[ -z "$memory" ] || check_match "$(cat "$MNT/dev/status")" 'memory.*67108864'
rmdir "$MNT/dev"
wait_for 10 gone "$T/kept"

# links out of a layer stay inside
mkdir "$T/inside"
put "$T/inside/ctl" "import $WORK/i/inside"
sandbox dev template=inside
check_eq "$(run dev 'cat /etc/through /etc/up; ls -d /gone 2>/dev/null; ls -d /kept')" $'in\nin\n/kept'
rmdir "$MNT/dev"
wait_for 10 gone "$T/inside"
check_not test -e /etc/through
check_not test -e /etc/up

# bad ones: refused with a sentence, nothing left
for bad in "$WORK"/i/bad-*; do
	name=${bad##*/}
	name=${name%.tar}
	mkdir "$T/$name"
	if echo "import $bad" >"$T/$name/ctl" 2>/dev/null; then fail "imported $bad"; fi
	case $name in bad-machine | bad-os) code=EOPNOTSUPP ;; *) code=EINVAL ;; esac
	check_match "$(tail -n 1 "$MNT/error")" ": $code: .+"
	check_eq "$(field "$T/$name/status" state)" error "state of $name"
	check_match "$(cat "$T/$name/status")" 'reason .+'
	expect_error ENOENT "$MNT/error" "$name" bash -c "echo 'create x template=$name' >'$MNT/ctl'"
	rmdir "$T/$name"
done
check_not test -e "$WORK/i/outside"
check_not test -e "$WORK/outside"

# keys
mkdir "$T/k"
for bad in sha256=12 sha256=Z memory=1 memory=x cpus=0 os= 'os=a b' uefi=maybe frobnicate=yes nokey pids=10; do
	expect_errno EINVAL bash -c "echo \"import $WORK/i/good.tar '$bad'\" >'$T/k/ctl'"
done
for cannot in os=windows uefi=yes tpm=yes specialized=yes; do
	expect_errno EOPNOTSUPP bash -c "echo 'import $WORK/i/good.tar $cannot' >'$T/k/ctl'"
done
check_eq "$(field "$T/k/status" state)" none 'nothing happened'
expect_errno EOPNOTSUPP bash -c "echo 'import image:debian:12' >'$T/k/ctl'"
expect_error EINVAL "$MNT/error" checksum bash -c "echo 'import $WORK/i/good.tar sha256=$(printf '0%.0s' {1..64})' >'$T/k/ctl'"
put "$T/k/ctl" "import $WORK/i/good.tar sha256=$(sha256sum <"$WORK/i/good.tar" | cut -d ' ' -f 1) uefi=no"
can disk || expect_errno EOPNOTSUPP bash -c "echo 'import $WORK/i/good.tar disk=1G' >'$T/k/ctl'"
if can cpus; then
	put "$T/k/ctl" "import $WORK/i/good.tar cpus=0.5"
	check_match "$(cat "$T/k/info")" 'cpus 0.500'
else
	expect_errno EOPNOTSUPP bash -c "echo 'import $WORK/i/good.tar cpus=0.5' >'$T/k/ctl'"
fi

# aliases
put "$T/k/aliases" $'other\nimage:registry.example/x:1'
check_match "$(cat "$T/k/info")" 'alias image:registry.example/x:1'
for alias in other image:registry.example/x:1; do
	sandbox dev "template=$alias"
	check_match "$(cat "$MNT/dev/status")" 'template k'
	expect_error EBUSY "$MNT/error" "'dev'" rmdir "$T/k"
	rmdir "$MNT/dev"
done
for bad in 'a b' -x image: ../x; do
	expect_errno EINVAL bash -c "echo '$bad' >'$T/k/aliases'"
done
expect_errno EEXIST bash -c "echo host >'$T/k/aliases'"
check_eq "$(cat "$T/k/aliases")" $'other\nimage:registry.example/x:1'
: >"$T/k/aliases"
expect_error ENOENT "$MNT/error" other bash -c "echo 'create x template=other' >'$MNT/ctl'"
wait_for 10 gone "$T/k"
check_eq "$(cd "$T" && echo *)" host
