#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# machine.sh DIR: makes DIR a template of the backend libvirt: Debian's kernel for virtual machines, and an initramfs with
# busybox and cube-init, whose files are the root of each sandbox. Takes seconds; the kernel is kept (lib.sh).
set -eu
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # of lib.sh
GUEST_MODULES=(virtio_pci virtio_blk virtio_console virtio_net virtio_balloon virtio-rng overlay evdev button)
CUBE_INIT=${CUBEFS_AGENT:-$CUBEFS_BUILD_DIR/cube-init}

# Smaller, and up in half the time.
guest_package() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }'
}

machine_programs() { # DIR
	local name
	mkdir -p "$1/bin"
	cp -L "$(command -v busybox)" "$1/bin/busybox"
	for name in $(busybox --list); do
		[ -e "$1/bin/$name" ] || ln -s busybox "$1/bin/$name"
	done
}

machine_base() { # DIR
	machine_programs "$1"
	mkdir -p "$1"/{sbin,etc,root,home}
	cp "$CUBE_INIT" "$1/sbin/cube-init"
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$1/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
	printf 'small\n' >"$1/etc/name"
}

guest_kernel || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{proc,sys,dev} "$1"
machine_programs "$work"
machine_base "$work/base"
guest_modules "$work"
cp "$GUEST_HERE/machine" "$work/init"
chmod 755 "$work/init"
(cd "$work" && find . -print0 | cpio --quiet -0 -o -H newc) | gzip -1 >"$1/initrd"
cp "$KERNEL" "$1/kernel"
printf '{"arch": "x86_64", "agent": "cube-init"}\n' >"$1/info.json"
