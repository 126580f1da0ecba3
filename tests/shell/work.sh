#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A person's work: a C project is copied in, built, tested, edited, kept in git; a server runs in a job.
. "$(dirname "$0")/lib.sh"
require gcc make git python3 vim.tiny tmux
start_cubefs
sandbox dev
D=$MNT/dev

mkdir -p "$WORK/calc/src" "$WORK/calc/tests"
cat >"$WORK/calc/src/calc.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long sum = 0;

	for (int i = 1; i < argc; i++)
		sum += atol(argv[i]);
	printf("%ld\n", sum);
	return 0;
}
EOF
printf 'calc: src/calc.c\n\t$(CC) -Wall -Werror -o $@ $<\ntest: calc\n\tsh tests/run.sh\n' >"$WORK/calc/Makefile"
printf 'test "$(./calc 1 2 3)" = 6 && echo passed\n' >"$WORK/calc/tests/run.sh"

cp -a "$WORK/calc" "$D/workspace/"
check_match "$(run dev 'cd calc && make test 2>&1')" 'passed$'
check test -x "$D/workspace/calc/calc"
check_eq "$(run dev 'make')" "make: 'calc' is up to date."

# an editor on the mount
cd "$D/workspace/calc"
vim.tiny -es -u NONE -c '%s/sum += atol/sum -= atol/' -c wq src/calc.c
check grep -q 'sum -= atol' src/calc.c
r=0; run dev 'make test >/tmp/out 2>&1' || r=$?
[ "$r" -ne 0 ] || fail 'the broken program passed'
sed -i 's/sum -= atol/sum += atol/' src/calc.c
check_match "$(run dev 'make test 2>&1')" 'passed$'

git init -q; git config user.email t@example.org; git config user.name t
printf 'calc\n' >.gitignore
git add -A; git commit -qm first
echo '// more' >>src/calc.c
check_eq "$(git status --porcelain)" ' M src/calc.c'
git checkout -q src/calc.c
check_eq "$(git status --porcelain)" ''
cd /

# a server in a job, asked from a session
mkdir "$D/jobs/server"
put "$D/jobs/server/cmd" 'exec python3 -u -m http.server 8000 --bind 127.0.0.1'
wait_for 20 grep -q Serving "$D/jobs/server/output"
check_match "$(run dev 'python3 -c "import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8000/calc/Makefile\").read().decode())"')" 'calc: src'
wait_for 5 grep -q 'GET /calc/Makefile' "$D/logs"
put "$D/jobs/server/ctl" kill
check_eq "$(cat <>"$D/jobs/server/exit")" 143

# cubefs sh: a real terminal
export CUBEFS_MOUNT=$MNT
check_eq "$(echo 'echo piped; exit 3' | { cubefs sh dev || echo "code $?"; })" $'piped\ncode 3'
check_eq "$(cubefs sh dev sh -c 'echo out; echo err >&2' 2>/dev/null)" out
r=0; cubefs sh dev false || r=$?; check_eq "$r" 1
out=$(cubefs sh nosuch 2>&1) && fail 'a shell in no sandbox'
check_match "$out" 'nosuch.*No such file'
SOCK=$WORK/tmux
on_exit tmux -S "$SOCK" kill-server
tmux -S "$SOCK" -f /dev/null new-session -d -x 90 -y 30 "cubefs sh '$D'; echo \"code \$?\"; sleep 100"
screen() { tmux -S "$SOCK" capture-pane -p; }
on_screen() { screen | grep -q -- "$1"; }
keys() { tmux -S "$SOCK" send-keys "$@"; }
wait_for 10 on_screen '[#$] *$'
keys 'stty size' Enter; wait_for 10 on_screen '^30 90'
tmux -S "$SOCK" resize-window -x 70 -y 20
wait_for 10 eval "keys 'stty size' Enter; sleep 0.3; on_screen '^20 70'"
keys 'sleep 100' Enter; sleep 0.5; keys C-c
keys 'echo after-$((1+1))' Enter; wait_for 10 on_screen '^after-2'
keys 'exit 7' Enter; wait_for 10 on_screen '^code 7'
