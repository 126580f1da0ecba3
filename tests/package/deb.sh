#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package: built of a build directory, installed with dpkg where nobody else sees it (overlays over
# /usr/* and /var in a mount namespace of our own), used from the installed paths, removed.
#     deb.sh BUILD-DIRECTORY
set -eEu
BUILD=$(cd "${1:?the build directory}" && pwd -P)
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

skip() {
	printf 'skip: %s\n' "$*"
	exit 77
}

fail() {
	printf 'FAIL: %s\n' "$*" >&2
	exit 1
}
trap 'fail "$BASH_SOURCE:$LINENO: $BASH_COMMAND"' ERR

[ "$(id -u)" -eq 0 ] || skip 'installing needs root'
for tool in cpack dpkg dpkg-shlibdeps unshare gzip; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done

if [ "${2-}" != inside ]; then
	WORK=$(mktemp -d /tmp/cubefs-package.XXXXXX)
	trap 'rm -rf --one-file-system "$WORK"' EXIT
	(cd "$WORK" && cpack --config "$BUILD/CPackConfig.cmake" -G DEB -B "$WORK/out" >"$WORK/log" 2>&1) ||
		fail "cpack: $(tail -n 20 "$WORK/log")"
	unshare -m --propagation private "$TOP/tests/package/deb.sh" "$BUILD" inside "$WORK"
	exit
fi

# ---- in the namespace ----
WORK=$3
DEB=$(echo "$WORK"/out/*.deb)
[ -f "$DEB" ] || fail 'there is no package'

# Not over /usr itself: the template `host` wants that in the root's file system.
for dir in usr/bin usr/libexec usr/share var; do
	[ -d "/$dir" ] || skip "there is no /$dir"
	mkdir -p "$WORK/$dir/upper" "$WORK/$dir/work"
	mount -t overlay -o "lowerdir=/$dir,upperdir=$WORK/$dir/upper,workdir=$WORK/$dir/work" overlay "/$dir" ||
		skip "no overlay over /$dir here"
done

# what is in it
dpkg-deb -I "$DEB" >"$WORK/info"
for word in crun fuse3 uidmap libfuse3-3 libuv1 libjansson4 libarchive13 libncursesw6; do
	grep -q "Depends:.*\b$word\b" "$WORK/info" || fail "it does not depend on $word: $(cat "$WORK/info")"
done
dpkg-deb -c "$DEB" >"$WORK/files"
for file in bin/cubefs libexec/cubefs/cube-init share/doc/cubefs/{README.md,copyright,changelog.gz} \
	share/bash-completion/completions/cubefs share/zsh/vendor-completions/_cubefs \
	share/fish/vendor_completions.d/cubefs.fish; do
	grep -q " \./usr/$file\$" "$WORK/files" || fail "it has no /usr/$file"
done
for page in "$TOP"/docs/*.[1-9]; do
	page=${page##*/}
	grep -q " \./usr/share/man/man${page##*.}/$page.gz\$" "$WORK/files" || fail "it has no page $page"
done
! awk '$2 != "root/root" || substr($1, 9, 1) == "w"' "$WORK/files" | grep . ||
	fail 'something of it is not root'"'"'s, or for everybody to write'
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error "$DEB" || fail 'lintian finds errors'
fi

# installed; what a first user does
dpkg --log="$WORK/dpkg.log" -i "$DEB" >"$WORK/log" 2>&1 || fail "dpkg -i: $(cat "$WORK/log")"
unset CUBEFS_MOUNT CUBEFS_STATE_DIR
PATH=/usr/sbin:/usr/bin:/sbin:/bin
[ "$(command -v cubefs)" = /usr/bin/cubefs ] || fail 'it is not in the path'
[ "$(cubefs --version)" = "cubefs $(dpkg-query -W -f '${Version}' cubefs)" ] || fail 'another version'
gzip -dc /usr/share/man/man1/cubefs.1.gz | grep -q '^\.Dt CUBEFS 1' || fail 'the manual cannot be read'
bash -c '. /usr/share/bash-completion/completions/cubefs && complete -p cubefs' | grep -q _cubefs
mkdir "$WORK/state"
cubefs --state "$WORK/state" "$WORK/mnt"
trap 'cubefs umount "$WORK/mnt" || true' EXIT
mkdir "$WORK/mnt/dev"
echo "echo hello from \$(hostname)" >"$WORK/mnt/dev/exec" || fail "$(tail -n 1 "$WORK/mnt/dev/error")"
[ "$(cat "$WORK/mnt/dev/exec")" = 'hello from dev' ] || fail "it said '$(cat "$WORK/mnt/dev/exec")'"
cubefs top -b "$WORK/mnt" | grep -q '^dev .*running' || fail 'top does not show it'
rmdir "$WORK/mnt/dev"
for ((i = 0; i < 100; i++)); do
	[ -n "$(ls -A "$WORK/state/cubes")" ] || break
	sleep 0.1
done
cubefs umount "$WORK/mnt"
trap - EXIT

# gone without a trace
dpkg --log="$WORK/dpkg.log" -P cubefs >"$WORK/log" 2>&1 || fail "dpkg -P: $(cat "$WORK/log")"
[ ! -e /usr/bin/cubefs ] || fail 'it is still there'
[ ! -e /usr/libexec/cubefs ] || fail '/usr/libexec/cubefs is left'
