#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Further shells: sessions/NAME.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev env.FROM_CREATE=1
D=$MNT/dev

srun() { # SESSION TEXT
	put "$D/sessions/$1/exec" "$2"
	cat "$D/sessions/$1/exec"
}

check_eq "$(ls "$D/sessions")" main
mkdir "$D/sessions/a" "$D/sessions/b"
check_eq "$(ls "$D/sessions/a" | sort | tr '\n' ' ')" 'ctl cwd env exec exit status user '
srun a 'cd /tmp; V=a'; srun b 'cd /usr; V=b'
check_eq "$(srun a 'pwd; echo $V')" $'/tmp\na'
check_eq "$(srun b 'pwd; echo $V')" $'/usr\nb'
check_eq "$(cat "$D/sessions/a/cwd")" /tmp
check_eq "$(srun main 'pwd')" /workspace
check_eq "$(cat "$D/exec")" /workspace 'exec is the main session'

# they run side by side
( srun a 'while ! test -e /tmp/go; do sleep 0.05; done; echo went' >"$WORK/a" ) & pid=$!
srun b 'touch /tmp/go' && wait $pid
check_eq "$(cat "$WORK/a")" went

# env: of the sandbox, of a session; what is changed is exported before the next command
check_eq "$(srun a 'echo $FROM_CREATE')" 1
put "$D/env" 'NEW=two words'
check_eq "$(cat "$D/env")" 'NEW=two words'
check_eq "$(srun a 'echo "$NEW-$FROM_CREATE-"')" 'two words--'
echo 'MORE=3' >>"$D/env"
check_eq "$(srun b 'echo "$NEW $MORE"')" 'two words 3'
srun a 'export MINE="quote'"'"'s and \\ \$"'
check grep -qF "MINE=quote's and \\ \$" "$D/sessions/a/env"
echo 'SET=by file' >>"$D/sessions/a/env"
check_eq "$(srun a 'echo "$SET"')" 'by file'
expect_error EINVAL "$D/error" 'line 1' bash -c "echo nonsense >'$D/env'"
check_eq "$(cat "$D/env")" $'NEW=two words\nMORE=3' 'env after a refused write'

# cwd is written, from the next command
put "$D/sessions/a/cwd" /var
check_eq "$(srun a pwd)" /var

# user: before the first command
mkdir "$D/sessions/u"
put "$D/sessions/u/user" nobody
check_eq "$(srun u 'id -un')" nobody
expect_errno EBUSY bash -c "echo root >'$D/sessions/u/user'"

# ctl: kill, reset
( srun a 'echo hi; sleep 60' >/dev/null ) & pid=$!
wait_for 10 grep -q hi "$D/sessions/a/exec"
put "$D/sessions/a/ctl" kill
wait $pid
check_eq "$(cat "$D/sessions/a/exit")" 143
check_eq "$(srun a 'pwd; echo "$MINE"')" "/var
quote's and \\ \$" 'directory and exports after kill'
put "$D/sessions/a/ctl" reset
check_eq "$(srun a 'pwd; echo "-$V"')" $'/var\n-'

# patience: the close returns, the command goes on
put "$D/sessions/b/ctl" 'set patience=1'
start=$SECONDS
put "$D/sessions/b/exec" 'sleep 3; echo patient'
[ $((SECONDS - start)) -lt 3 ] || fail 'patience had no effect'
check_eq "$(cat "$D/sessions/b/exit")" -
check_eq "$(cat <>"$D/sessions/b/exit")" 0
check_eq "$(cat "$D/sessions/b/exec")" patient

# timeout of a session: 124, with all it started; earlier children live on
put "$D/sessions/b/ctl" 'set patience=0'
srun b 'sleep 50 & echo $! > /tmp/earlier'
put "$D/sessions/b/ctl" 'set timeout=1'
srun b 'setsid sleep 60 & echo $! > /tmp/its; sleep 60'
check_eq "$(cat "$D/sessions/b/exit")" 124
put "$D/sessions/b/ctl" 'set timeout=0'
check_eq "$(srun b 'kill -0 $(cat /tmp/earlier) && echo lives; kill -0 $(cat /tmp/its) 2>/dev/null || echo gone')" $'lives\ngone'

# rules of the directory
expect_errno EEXIST mkdir "$D/sessions/a"
expect_errno EBUSY rmdir "$D/sessions/main"
expect_errno EPERM mv "$D/sessions/a" "$D/sessions/c"
rmdir "$D/sessions/a" "$D/sessions/b" "$D/sessions/u"
check_eq "$(ls "$D/sessions")" main
mkdir "$D/sessions/näme with blank"
check_eq "$(srun 'näme with blank' 'echo ok')" ok
