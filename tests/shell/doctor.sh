#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cubefs doctor: what it finds is true, and each fault comes with its fix.
. "$(dirname "$0")/lib.sh"

out=$(cubefs doctor --state "$STATE") || true
check_match "$out" 'ok +/dev/fuse can be opened'
check_match "$out" 'ok +local: .*crun'
check_match "$out" 'ok +local: can do: exec'
while read -r line; do
	[[ $line != FAIL* ]] || read -r _ || fail "no fix for: $line"
done <<<"$out"

# without crun it says so, and so does a create
mkdir "$WORK/bin"
for tool in /usr/bin/* /bin/*; do
	[ "${tool##*/}" = crun ] || ln -sf "$tool" "$WORK/bin/" 2>/dev/null
done
real=$(command -v cubefs)
out=$(PATH=$WORK/bin "$real" doctor --state "$STATE") && fail 'doctor is content without crun'
check_match "$out" 'FAIL +local: sandboxes can run'
check_match "$out" 'apt-get install crun'
PATH=$WORK/bin:$(dirname "$real") start_cubefs
expect_error EOPNOTSUPP "$MNT/error" crun bash -c "echo 'create x' >'$MNT/ctl'" ||
	fail 'create without crun'
check_not test -e "$MNT/x"
