#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A copy of a build's binaries, of these tests and of the documents that they read, where every user can read it, since a checkout may lie
# in root's home. stage.sh where|make|remove BUILD_DIR
set -eu
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
BUILD=$(cd "$2" && pwd -P)
STAGE=${TMPDIR:-/tmp}/cubefs-stage.$(cksum <<<"$BUILD" | cut -d ' ' -f 1)
FILES=(fs/cubefs cube-init tests/shell/reap tests/shell/cubefs-held tests/shell/cubefs-other
	tests/shell/cubefs-next tests/shell/cubefs-given tests/shell/cubefs-broken tests/posix/posix-suite tests/posix/posix-churn)

make() {
	local file new
	new=$(mktemp -d "$STAGE.XXXXXX")
	chmod 755 "$new"
	for file in "${FILES[@]}"; do
		install -D -m 755 "$BUILD/$file" "$new/$file"
	done
	mkdir -p "$new/tests/shell"
	cp -r "$HERE/." "$new/tests/shell"
	cp -r "$HERE/../p9" "$HERE/../servers" "$new/tests"
	[ ! -d "$BUILD/../python" ] || cp -r "$BUILD/../python" "$new"
	mkdir "$new/docs"
	cp "$HERE/../../README.md" "$new"
	mkdir -p "$new/ctl/cli"
	cp -r "$HERE/../../ctl/cli/completion" "$new/ctl/cli"
	cp "$HERE"/../../docs/*.[1-9] "$new/docs"
	chmod -R a+rX "$new"
	rm -rf "$STAGE"
	mv "$new" "$STAGE"
}

case $1 in
where) echo "$STAGE" ;;
make) make ;;
remove) rm -rf "$STAGE" ;;
*)
	echo "stage.sh: where, make or remove" >&2
	exit 2
	;;
esac
