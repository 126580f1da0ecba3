# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A virtual machine with the kernel of Debian's linux-image-amd64 and an initramfs made here, for what the kernel
# of this machine may not have (v9fs) and for guests of tests. Needs no rights, installs nothing: the kernel's
# package is downloaded and unpacked into a cache.
#
#     guest_kernel                         leaves KERNEL (its image) and KERNEL_ROOT (with its modules), or returns 1
#     guest_initrd FILE INIT [PATH...]     busybox, modules, the programs and files of PATH, INIT as its first program
#     guest_boot SECONDS FILE WORDS [OPTION...]
#                                          runs it, with the serial console on stdout; WORDS for the kernel's
#                                          command line, QEMU's further OPTIONs
#
# INIT is a shell script that gets a machine whose /proc, /sys, /dev and modules are ready; what it ends with is
# the last line of the console, "guest: ended with CODE", which guest_boot returns. What is in the directory
# GUEST_OVERLAY, if set, is there too. All is for one processor without KVM: a boot takes 5 to 20 s.

GUEST_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
GUEST_CACHE=${CUBEFS_GUEST_CACHE:-${CUBEFS_BUILD_DIR:?}/guest}
# In the order in which they are loaded, what they need before each.
GUEST_MODULES=(virtio_pci virtio_net virtio_console 9p 9pnet_fd 9pnet_virtio)

guest_say() {
	printf 'guest: %s\n' "$*" >&2
}

# The package that linux-image-amd64 stands for today.
guest_package() {
	apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }'
}

# Into a directory beside it first, so that the cache has whole ones only.
guest_unpack() { # PACKAGE
	local new=$GUEST_CACHE/.$1.$$
	mkdir -p "$new/root" &&
		(cd "$new" && apt-get -q download "$1" >/dev/null && dpkg -x "$1"_*.deb root && rm "$1"_*.deb) &&
		depmod -b "$new/root" "${1#linux-image-}" &&
		mv -T "$new" "$GUEST_CACHE/$1"
	local code=$?
	rm -rf "$new"
	[ "$code" -eq 0 ] || [ -d "$GUEST_CACHE/$1" ] # another one was faster
}

guest_kernel() {
	local package
	package=$(guest_package)
	if [ -z "$package" ]; then
		guest_say 'no package source knows linux-image-amd64 (apt-get update)'
		return 1
	fi
	if [ ! -d "$GUEST_CACHE/$package" ] && ! guest_unpack "$package"; then
		guest_say "$package cannot be downloaded or unpacked into $GUEST_CACHE"
		return 1
	fi
	KERNEL_ROOT=$GUEST_CACHE/$package/root
	KERNEL_VERSION=${package#linux-image-}
	KERNEL=$KERNEL_ROOT/boot/vmlinuz-$KERNEL_VERSION
}

# Modules into DIR/modules, named in DIR/modules.order, each after what it needs.
guest_modules() { # DIR
	local module file
	mkdir -p "$1/modules"
	for module in "${GUEST_MODULES[@]}"; do
		modprobe -d "$KERNEL_ROOT" -S "$KERNEL_VERSION" --show-depends "$module" || return 1
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$1/modules.list"
	while read -r file; do
		cp "$file" "$1/modules/" || return 1
		printf '%s\n' "${file##*/}" >>"$1/modules.order"
	done <"$1/modules.list"
	rm "$1/modules.list"
}

# A program with its libraries, or any other file, at the same path as here.
guest_copy() { # DIR PATH
	local file
	{
		printf '%s\n' "$2"
		ldd "$2" 2>/dev/null | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) { print $i; break } }'
	} | while read -r file; do
		mkdir -p "$1${file%/*}" && cp -rL "$file" "$1${file%/*}/" || return 1
	done
}

# /bin and the like are links into /usr, as in Debian.
guest_tree() { # DIR
	local name
	for name in bin sbin lib lib64; do
		mkdir -p "$1/usr/$name" && ln -s "usr/$name" "$1/$name" || return 1
	done
}

guest_initrd() { # FILE INIT [PATH...]
	local out=$1 dir path
	dir=$(mktemp -d) || return 1
	guest_tree "$dir" && cp -L "$(command -v busybox)" "$dir/bin/busybox" && cp "$2" "$dir/main" &&
		cp "$GUEST_HERE/init" "$dir/init" && chmod 755 "$dir/main" "$dir/init" && guest_modules "$dir" || return 1
	shift 2
	for path in "$@"; do
		guest_copy "$dir" "$path" || return 1
	done
	[ -z "${GUEST_OVERLAY-}" ] || cp -r "$GUEST_OVERLAY/." "$dir" || return 1
	(cd "$dir" && find . -print0 | cpio --quiet -0 -o -H newc) | gzip -1 >"$out"
	rm -rf "$dir"
}

guest_boot() { # SECONDS FILE WORDS [OPTION...]
	local seconds=$1 initrd=$2 words=$3 last='' line
	shift 3
	exec 9< <(exec timeout -k 5 "$seconds" qemu-system-x86_64 -accel tcg -cpu max -m 512 -nodefaults -no-user-config -no-reboot \
		-display none -serial stdio -kernel "$KERNEL" -initrd "$initrd" \
		-append 'console=ttyS0 quiet panic=-1 random.trust_cpu=on'" $words" "$@" 2>&1 </dev/null)
	while IFS= read -r line <&9; do
		line=${line%$'\r'}
		printf '%s\n' "$line"
		[[ $line != 'guest: ended with '* ]] || last=${line##* }
	done
	exec 9<&-
	if [ -z "$last" ]; then
		guest_say "the machine did not come to its end within $seconds s, or could not be started"
		return 1
	fi
	return "$last"
}
