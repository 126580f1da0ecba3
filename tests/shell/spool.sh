#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Output above its limits: what is kept, the one line between, who had it open; users by number; who waits and is let go.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
sandbox dev
D=$MNT/dev
J=$D/jobs
put "$MNT/ctl" 'set output_limit=1M'
seq -f "%09.0f" 1 250000 >"$WORK/all" # 2,500,000 bytes: below the three times to which a reader holds on

# a plain reader that was there keeps what it saw; the halves of the limit stay, one line between says what is missing
mkdir "$J/big"
put "$J/big/cmd" "seq -f '%09.0f' 1 90000; until [ -e go ]; do sleep 0.05; done; seq -f '%09.0f' 90001 250000"
wait_for 30 eval '[ "$(stat -c %s "$J/big/stdout")" -eq 900000 ]'
exec 4<"$J/big/stdout"
touch "$D/workspace/go"
check_eq "$(cat <>"$J/big/exit")" 0
check cmp <(head -c 900000 "$WORK/all") <(head -c 900000 <&4)
exec 4<&-
size=$(stat -c %s "$J/big/stdout")
cp "$J/big/stdout" "$WORK/kept"
check_eq "$(stat -c %s "$WORK/kept")" "$size"
check cmp <(head -c 524288 "$WORK/all") <(head -c 524288 "$WORK/kept")
check cmp <(tail -c 500000 "$WORK/all") <(tail -c 500000 "$WORK/kept")
check_eq "$(grep -c bytes "$WORK/kept")" 1 'lines that say what is missing'
dropped=$(field "$J/big/status" dropped)
check_eq "$(field "$J/big/status" bytes)" 2500000
check_eq "$(grep -a bytes "$WORK/kept" | grep -oE '[0-9]{2,}' | grep -cx "0*$dropped")" 1 "the number in the line ($dropped)"
[ "$size" -le 1200000 ] || fail "the limit is 1M, and the file has $size bytes"

# spool_limit: of the oldest ended ones the output goes, not the jobs
put "$MNT/ctl" 'set spool_limit=2M'
for n in 1 2 3 4; do
	mkdir "$J/s$n"
	put "$J/s$n/cmd" "head -c 900000 /dev/zero | tr '\\0' x"
	check_eq "$(cat <>"$J/s$n/exit")" 0
done
check_eq "$(stat -c %s "$J/s4/stdout")" 900000 'the newest'
check_eq "$(tr -d x <"$J/s1/stdout" | wc -c)" "$(stat -c %s "$J/s1/stdout")" 'the oldest has nothing of its output'
check_eq "$(cat "$J/s1/exit")" 0

# users by number, of a job and of a session
mkdir "$J/uid" "$J/both" "$D/sessions/n"
put "$J/uid/user" 1
put "$J/uid/cmd" 'id -u'
check_eq "$(cat <>"$J/uid/output")" 1
put "$J/both/user" 1:2
put "$J/both/cmd" 'id -u; id -g'
check_eq "$(cat <>"$J/both/output")" $'1\n2'
put "$D/sessions/n/user" 1:2
put "$D/sessions/n/exec" 'id -u; id -g'
check_eq "$(cat "$D/sessions/n/exec")" $'1\n2'
expect_errno EBUSY bash -c "echo 3 >'$D/sessions/n/user'"

# a writer that ends with the file open is let go after exit_patience, or when its job is ended; the command goes on
put "$MNT/ctl" 'set exit_patience=1'
python3 -c 'print("until [ -e on ]; do sleep 0.05; done; echo on")' >"$D/exec" || true
check_eq "$(cat "$D/exit")" -
check grep -q 'was let go' "$D/error"
touch "$D/workspace/on"
check_eq "$(cat <>"$D/exit")" 0
check_eq "$(cat "$D/exec")" on

# an exit code, the same directory afterwards; the latest command for who only reads
put "$D/exec" 'cd /usr; exit 3'
check_eq "$(cat "$D/exit")" 3
check_eq "$(run dev pwd)" /usr
check_eq "$(cat <>"$D/exec")" /usr
expect_errno EINVAL bash -c "printf 'a\\0b' >'$D/exec'"
