#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With `keep = yes` the kernel keeps the data of files that it was served, while nothing runs inside: it is not read twice
# then, and what was written inside by whatever way, a store to a mapped page too, is read by the next open.
. "$(dirname "$0")/lib.sh"
require python3
printf '[files]\nkeep = yes\n' >"$WORK/conf"
allow_log 'keep=yes: this kernel cannot' # before Linux 6.16
LOG=$WORK/log.pages
start_cubefs -o debug --config "$WORK/conf"
sandbox dev
D=$MNT/dev
W=$D/files/workspace
CANNOT=$(grep -c 'keep=yes: this kernel cannot' "$LOG" || true)

# ---- how often it is read ----
reads() { grep -c 'opcode: READ ' "$LOG" || true; }
head -c 1M /dev/urandom >"$WORK/random"
cp "$WORK/random" "$W/f"
attributes_kept() { # two looks at them that the kernel answers itself: it is known by then that nothing runs
	local before
	before=$(grep -c 'opcode: \(GETATTR\|STATX\|LOOKUP\)' "$LOG")
	stat "$W/f" >/dev/null
	[ "$(grep -c 'opcode: \(GETATTR\|STATX\|LOOKUP\)' "$LOG")" -le $((before + 3)) ]
}
wait_for 20 attributes_kept
check cmp "$WORK/random" "$W/f"
before=$(reads)
for _ in $(seq 20); do check cmp "$WORK/random" "$W/f"; done
n=$(($(reads) - before))
if [ "$TEST_UID" -ne 0 ] && [ "$CANNOT" -eq 0 ]; then
	[ "$n" -le 60 ] || fail "$n reads while nothing runs"
	mkdir "$D/jobs/busy"
	put "$D/jobs/busy/cmd" 'exec sleep 1000'
	before=$(reads)
	for _ in $(seq 20); do check cmp "$WORK/random" "$W/f"; done
	n=$(($(reads) - before))
	[ "$n" -ge 80 ] || fail "only $n reads while something runs"
	put "$D/jobs/busy/ctl" kill
	check_eq "$(cat <>"$D/jobs/busy/exit")" 143
fi

# ---- what is stored inside to a page that is dirty already moves no time ----
put "$D/exec" 'truncate -s 8192 mapped'
cat >"$W/stores.py" <<'E2'
import mmap, os, sys
m = mmap.mmap(os.open('mapped', os.O_RDWR), 8192)
m[0:8] = b'%08d' % 0
for line in iter(sys.stdin.readline, ''):
    m[0:8] = b'%08d' % int(line)
    print('stored', line, end='', flush=True)
E2
mkdir "$D/jobs/stores"
put "$D/jobs/stores/ctl" 'stdin pipe'
put "$D/jobs/stores/cmd" 'exec python3 stores.py'
exec 7>"$D/jobs/stores/stdin"
stored() { grep -qx "stored $1" "$D/jobs/stores/stdout"; }
for i in $(seq 10); do
	echo "$i" >&7
	wait_for 20 stored "$i"
	check_eq "$(head -c 8 "$W/mapped")" "$(printf %08d "$i")" "after store $i"
done
exec 7>&-
check_eq "$(cat <>"$D/jobs/stores/exit")" 0
for i in $(seq 30); do
	wait_for 20 test -s "$W/mapped"
	check_eq "$(head -c 8 "$W/mapped")" "$([ "$i" -eq 1 ] && echo 00000010 || printf %08d $((i + 99)))" "round $i"
	run dev "echo $((i + 100)) | python3 stores.py" >/dev/null
done
# and what is written outside, by another open, in the same moment
for i in $(seq 30); do
	echo "$i" >"$W/small"
	check_eq "$(cat "$W/small")" "$i"
	printf x | dd of="$W/small" conv=notrunc status=none
	check_eq "$(head -c 1 "$W/small")" x
done
