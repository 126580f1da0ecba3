#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Links made inside cannot lead a host's tool astray.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
D=$MNT/dev
F=$D/files
echo secret >"$WORK/secret"

run dev "mkdir -p a/b/c; echo inside > /root/shadow; echo target > a/target
ln -s /root/shadow abs; ln -s ../../../../../../../../../..$WORK/secret up; ln -s $WORK/secret host
ln -s / slash; ln -s .. dotdot; ln -s ../../.. a/b/c/three; ln -s ../target a/b/near; ln -s b/../target a/over
ln -s a/b sub; ln -s sub/../../../../../..$WORK/secret trick; ln -s /proc/self/root$WORK/secret proc
ln -s /workspace/a/target ws; ln -s '' empty 2>/dev/null; ln -s self self; ln -s . dot; mkdir -p /deep/er; ln -s /root/shadow /deep/er/abs"

# those that stay inside are given byte for byte
check_eq "$(readlink "$F/workspace/a/b/near")" ../target
check_eq "$(readlink "$F/workspace/sub")" a/b
check_eq "$(readlink "$F/workspace/dot")" .
check_eq "$(cat "$F/workspace/a/b/near")" target
# all others stay inside and mean there what they mean inside
check_eq "$(cat "$F/workspace/abs")" inside
check_eq "$(cat "$F/deep/er/abs")" inside
check_eq "$(cat "$F/workspace/ws")" target
check_eq "$(ls "$F/workspace/slash" | sort)" "$(ls "$F" | sort)"
check_eq "$(stat -L -c %i "$F/workspace/slash")" "$(stat -c %i "$F")"
check_match "$(readlink "$F/workspace/abs")" '^\.\.'
for link in up host trick proc; do
	check_not grep -q secret "$F/workspace/$link" 2>/dev/null
done
expect_errno ELOOP cat "$F/workspace/self"
# the size is that of what readlink gives
for link in abs sub dotdot slash a/b/c/three; do
	check_eq "$(stat -c %s "$F/workspace/$link")" "$(readlink -n "$F/workspace/$link" | wc -c)" "size of $link"
done

# writing through one lands inside
echo written >"$F/workspace/host" 2>/dev/null || true
check_eq "$(cat "$WORK/secret")" secret
mkdir -p "$F$WORK" 2>/dev/null || run dev "mkdir -p $WORK"
echo written >"$F/workspace/host"
check_eq "$(cat "$WORK/secret")" secret
check_eq "$(cat "$F$WORK/secret")" written
cp -L "$F/workspace/ws" "$WORK/copied"; check_eq "$(cat "$WORK/copied")" target
check_eq "$(cat "$WORK/secret")" secret

# from every depth, through a directory that is a link itself
check_eq "$(cat "$F/workspace/sub/../target")" target
check_eq "$(cd "$F/workspace/sub/c" && cat three/abs)" inside

# a component that is swapped for a link during a walk gains nothing
run dev 'mkdir -p swap/d; echo own > swap/d/secret; ln -s '"$WORK"' swap/l
nohup sh -c "cd swap; while :; do mv -T d x; mv -T l d; mv -T d l; mv -T x d; done" >/dev/null 2>&1 &'
for _ in $(seq 300); do
	[ "$(cat "$F/workspace/swap/d/secret" 2>/dev/null)" != secret ] || fail 'a swapped link led outside'
done
put "$D/ctl" 'kill KILL'
