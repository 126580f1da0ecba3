#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Write, then read: what is one command, what it prints, how it ends, what lives on.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
D=$MNT/dev

# before any command
mkdir "$D/sessions/fresh"
check_eq "$(cat "$D/sessions/fresh/exec")" '' 'exec without a command'
check_eq "$(cat "$D/sessions/fresh/exit")" - 'exit without a command'
check_eq "$(cat <>"$D/sessions/fresh/exit")" - 'exit as a channel without a command'

# what comes through one open file is one command
{ echo 'X=one'; /bin/true; echo 'echo $X'; } >"$D/exec"
check_eq "$(cat "$D/exec")" one
printf 'echo a\necho b' >"$D/exec"
check_eq "$(cat "$D/exec")" $'a\nb' 'no final newline'
cat >"$D/exec" <<'EOF'
cat <<END
here is "text" with 'quotes' and $HOME
END
EOF
check_eq "$(cat "$D/exec")" "here is \"text\" with 'quotes' and $(run dev 'echo $HOME')"
check_eq "$(run dev 'cat <<END
last line is the here-document
END')" 'last line is the here-document'

# the session lives on
run dev 'cd /tmp; V=kept; f() { echo "f of $V"; }; set -o noglob; export EXPORTED=yes'
check_eq "$(run dev 'pwd; f; echo *; printenv EXPORTED; set +o noglob')" $'/tmp\nf of kept\n*\nyes'
check_eq "$(run dev 'cd /workspace; pwd')" /workspace

# codes
run dev true
for code in 1 2 3 42 127 255; do
	r=0; run dev "(exit $code)" || r=$?
	check_eq "$r" "$code" 'exit code'
done
r=0; out=$(run dev 'nosuchcommand 2>&1') || r=$?
check_eq "$r" 127
check_match "$out" 'nosuchcommand.*not found'
r=0; run dev 'kill -9 $BASHPID' || r=$?
check_eq "$r" 137 'a shell that is killed'
r=0; run dev 'sh -c "kill -TERM \$\$"' 2>/dev/null || r=$?
check_eq "$r" 143 'a child that is killed'

# a syntax error is no hang, and the session lives
run dev 'cd /var; W=alive'
r=0; run dev "echo 'unbalanced" >"$WORK/out" || r=$?
check_eq "$r" 2 'code of a syntax error'
check_eq "$(run dev 'pwd; echo $W')" $'/var\nalive'

# exit: the code, and a fresh shell in the same directory with the same exports
run dev 'export KEPT=exported; NOT=kept; cd /usr'
r=0; run dev 'exit 3' || r=$?
check_eq "$r" 3 'exit 3'
check_eq "$(run dev 'pwd; echo "$KEPT-$NOT-"')" $'/usr\nexported--'
r=0; run dev 'set -e; false; echo not here' || r=$?
check_eq "$r" 1 'set -e'
check_eq "$(run dev 'echo again')" again
run dev 'exec true'
check_eq "$(run dev 'echo after exec')" 'after exec'
check_eq "$(run dev 'echo() { printf "mine %s\n" "$*"; }; command() { :; }; exec() { :; }; echo x')" 'mine x'
check_eq "$(run dev 'unset -f echo command exec; echo y')" y

# stdin is empty, only 0 to 2 are open, no signal is ignored or blocked
check_eq "$(run dev 'cat; wc -c')" 0
check_eq "$(run dev 'ls /proc/self/fd | head -n 3 | tr "\n" " "; bash -c "ls /proc/\$\$/fd" | wc -l')" '0 1 2 4' # (ls has the directory open)
check_eq "$(run dev 'grep -E "^Sig(Blk|Ign)" /proc/self/status | tr -d "\t\n"')" 'SigBlk:0000000000000000SigIgn:0000000000000000'

# bytes: in order, both streams, nothing added or dropped
check_eq "$(run dev 'for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done' | tr '\n' ' ')" \
	'o1 e1 o2 e2 o3 e3 o4 e4 o5 e5 o6 e6 o7 e7 o8 e8 o9 e9 '
run dev 'for i in $(seq 0 255); do printf "\\$(printf %03o $i)"; done; printf "\r\n\0no newline"' >"$WORK/bytes"
# shellcheck disable=SC2059 # octal escapes are made there
{ for i in $(seq 0 255); do printf "\\$(printf %03o "$i")"; done; printf '\r\n\0no newline'; } >"$WORK/want"
check cmp "$WORK/bytes" "$WORK/want"
run dev 'head -c 3000000 /dev/urandom | tee /tmp/random' >"$WORK/random"
check cmp "$WORK/random" "$D/files/tmp/random"
check_eq "$(stat -c %s "$D/exec")" 3000000 'size of exec'
for _ in 1 2 3 4 5; do check_eq "$(run dev 'printf fast')" fast; done

# the text arrives byte for byte, and never as an argument
{ printf "cat > /tmp/got <<'EOF'\n"; head -c 1000000 /dev/zero | tr '\0' x | fold -w 997; printf '\r\ttab\n\377\376\nEOF\n'; } >"$WORK/text"
cp "$WORK/text" "$D/exec"
check_eq "$(cat "$D/exit")" 0
sed '1d;$d' "$WORK/text" >"$WORK/want"
check cmp "$WORK/want" "$D/files/tmp/got"
check_eq "$(run dev 'tr "\0" " " </proc/$$/cmdline | grep -c findme || true')" 0 'text among the arguments'

# a NUL is refused at the write, above 4 MiB is too much
expect_error EINVAL "$D/error" NUL bash -c "printf 'echo a\0b\n' >'$D/exec'"
head -c 4194304 /dev/zero | tr '\0' ' ' >"$WORK/spaces"
cp "$WORK/spaces" "$D/exec"
check_eq "$(cat "$D/exit")" 0 'four MiB of blanks'
echo >>"$WORK/spaces"
expect_error EFBIG "$D/error" '4 MiB' cp "$WORK/spaces" "$D/exec"
check_eq "$(run dev 'echo ok')" ok

# a close with nothing written does nothing
: >"$D/exec"
check_eq "$(cat "$D/exec")" ok

# a background child delays nobody, is not hurt, and what it prints later is added
start=$SECONDS
run dev '{ sleep 2; echo late; } & echo now' >"$WORK/out"
[ $((SECONDS - start)) -lt 2 ] || fail 'a background child delayed the end'
check_eq "$(cat "$WORK/out")" now
wait_for 10 grep -q late "$D/exec"
check_eq "$(cat "$D/exec")" $'now\nlate'

# while it runs others see what there is so far
( echo 'echo first; sleep 1; echo second' >"$D/exec" ) &
wait_for 10 grep -q first "$D/exec"
check_eq "$(cat "$D/exec")" first
check_eq "$(cat "$D/exit")" -
check_eq "$(cat <>"$D/exec")" $'first\nsecond'
wait $!
