#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ways of a verb: answers of every ctl, ` &`, and mkdir, rmdir, mv as verbs.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
D=$MNT/dev
mkdir "$D/jobs/j" "$D/sessions/s" "$MNT/backends/local/templates/t"
on_exit rmdir "$MNT/backends/local/templates/t"

answer() { # FILE LINE: what a channel reads for it
	exec 7<>"$1"
	printf '%s\n' "$2" >&7 2>/dev/null || true
	cat <&7
	exec 7>&-
}

# ---- answers: of every ctl, one's own, and never a wait without a verb ----
for ctl in ctl backends/local/ctl backends/local/templates/t/ctl dev/ctl dev/sessions/s/ctl dev/jobs/j/ctl; do
	check_eq "$(timeout 10 cat <>"$MNT/$ctl")" '' "$ctl without a verb"
	check_match "$(answer "$MNT/$ctl" nonsense)" "^EINVAL no verb 'nonsense' here; known: " "$ctl"
	check_eq "$(answer "$MNT/$ctl" '# a comment')" ok "$ctl"
	check_eq "$(answer "$MNT/$ctl" '')" ok "$ctl"
	check_match "$(answer "$MNT/$ctl" '"no end')" '^EINVAL a quote ' "$ctl"
	expect_errno EINVAL put "$MNT/$ctl" nonsense
done
check_eq "$(answer "$MNT/ctl" 'create a1 label.x=1')" 'ok name=a1'
check_eq "$(answer "$MNT/ctl" 'create a1')" "EEXIST a sandbox named 'a1' is there already"
check_eq "$(answer "$MNT/backends/local/ctl" refresh)" ok
check_eq "$(answer "$D/sessions/s/ctl" 'set patience=1')" ok
check_eq "$(answer "$D/jobs/j/ctl" 'timeout 3')" ok
check_eq "$(answer "$D/ctl" 'wait running 1')" ok
check_match "$(answer "$D/ctl" 'wait stopped 0')" '^ETIMEDOUT '

# two channels at once: each its own
exec 3<>"$D/ctl" 4<>"$D/ctl"
echo 'set label.a=1' >&3
(echo 'set nothing=1' >&4) 2>/dev/null && fail 'a bad key was taken'
check_eq "$(cat <&3)" ok
check_match "$(cat <&4)" '^EINVAL '
check_eq "$(cat <&3)$(cat <&4)" '' 'an answer is given once'
# several lines of one write: an answer for each, up to the one that fails
(printf 'set label.a=1\nset label.b=2\n' >&3)
check_eq "$(cat <&3)" $'ok\nok'
exec 3>&- 4>&-

# ---- left to itself ----
put "$D/ctl" 'wait stopped 60 &'
check_eq "$(grep -c '^done ' "$D/status" || true)" 0
put "$D/ctl" 'wait paused 0 &'
wait_for 20 grep -q '^done wait ETIMEDOUT ' "$D/status"
put "$D/ctl" 'stop 0 &'
wait_for 20 grep -q '^done stop ok$' "$D/status"
wait_for 20 grep -q '^done wait ok$' "$D/status"
check grep -q '"event":"verb","detail":"stop ok"' "$MNT/events"
check grep -q '"event":"verb","detail":"wait ETIMEDOUT wait: it has not' "$MNT/events"
put "$D/ctl" 'start &'
put "$D/ctl" 'wait running 60'
# refused at once: as without it
expect_errno EINVAL put "$D/ctl" 'stop now &'
expect_errno EINVAL put "$D/ctl" 'nonsense &'
expect_errno EHOSTDOWN bash -c "mkdir '$MNT/z'; echo 'wait running 60' >'$MNT/z/ctl'; echo 'stop 0' >'$MNT/z/ctl'; echo 'pause &' >'$MNT/z/ctl'"
# a quoted & is a word
expect_errno EINVAL put "$D/ctl" "stop 0 '&'"
put "$MNT/ctl" 'create a2 &'
wait_for 20 grep -q '^done create ok$' "$MNT/ctl"
put "$MNT/ctl" 'destroy a2 &'
wait_for 20 grep -q '^done destroy ok$' "$MNT/ctl"
put "$MNT/backends/local/ctl" 'refresh &'
wait_for 20 grep -q '^done refresh ok$' "$MNT/backends/local/status"
put "$D/jobs/j/ctl" 'wait 0 &'
wait_for 20 grep -q '^done wait ETIMEDOUT ' "$D/status"

# ---- destroy by label ----
put "$MNT/ctl" 'create l1 label.team=red &'
put "$MNT/ctl" 'create l2 label.team=red label.n=2'
put "$MNT/ctl" 'create l3 label.team=blue'
expect_error ENOENT "$MNT/error" 'no sandbox has label.team=green' put "$MNT/ctl" 'destroy label.team=green'
expect_errno ENOENT put "$MNT/ctl" 'destroy label.team=red nobody'
check test -d "$MNT/l1" -a -d "$MNT/l2"
expect_errno EINVAL put "$MNT/ctl" 'destroy label.team='
put "$MNT/ctl" 'destroy label.n=2 label.team=red'
check_eq "$(cd "$MNT" && ls -d l?)" l3
uid=$(field "$MNT/l3/status" uid)
put "$MNT/ctl" 'destroy l3'
check_not test -e "$STATE/cubes/$uid" -o -e "$STATE/cubes/$uid.removed" # gone when it returns

# ---- hold: it lives as long as the channel, whatever ends that ----
expect_error EINVAL "$D/error" 'hold: ' put "$D/ctl" hold
exec 3<>"$MNT/clone"
read -r name <&3
echo hold >&3
expect_errno EINVAL bash -c 'echo other >&3'
check_eq "$(run "$name" 'echo held')" held
check_eq "$(cat <&3)" ''
sleep 300 3>&3 & copy=$! # a copy of it
exec 3>&-
check test -d "$MNT/$name"
put "$MNT/ctl" "rename $name kept"
kill -KILL "$copy"
wait "$copy" 2>/dev/null || true
wait_for 20 eval '! test -e "$MNT/kept"'
holder() { # NAME: a process that holds it until it is killed
	exec bash -c 'exec 3<>"$1/ctl" && echo hold >&3 && read -r answer <&3 && echo "$answer" && exec sleep 300' - "$MNT/$1"
}
sandbox h1
holder h1 >"$WORK/one" & one=$!
holder h1 >"$WORK/two" & two=$!
wait_for 20 grep -qs '^ok$' "$WORK/one"
wait_for 20 grep -qs '^ok$' "$WORK/two"
kill -KILL "$one"
wait "$one" 2>/dev/null || true
check_eq "$(run h1 'echo still')" still
kill -TERM "$two"
wait "$two" 2>/dev/null || true
wait_for 20 eval '! test -e "$MNT/h1"'

# ---- mkdir, rmdir, mv ----
put "$MNT/ctl" 'mkdir v1'
put "$MNT/v1/ctl" 'wait running 60'
check_eq "$(run v1 'echo made')" made
expect_error EEXIST "$MNT/error" "'v1'" put "$MNT/ctl" 'mkdir v1'
put "$MNT/ctl" 'mv v1 v2'
check_not test -e "$MNT/v1"
check_eq "$(run v2 'echo moved')" moved
expect_errno EEXIST put "$MNT/ctl" 'mv v2 dev'
expect_errno ENOENT put "$MNT/ctl" 'mv v1 v3'
put "$MNT/ctl" 'mkdir v2/jobs/x'
put "$MNT/v2/jobs/x/cmd" 'echo from x'
check_eq "$(cat <>"$MNT/v2/jobs/x/output")" 'from x'
put "$MNT/v2/ctl" 'rmdir jobs/x'
check_not test -e "$MNT/v2/jobs/x"
put "$MNT/v2/ctl" 'mkdir sessions/me'
put "$MNT/v2/sessions/me/exec" 'echo mine'
check_eq "$(cat "$MNT/v2/sessions/me/exec")" mine
put "$MNT/ctl" 'rmdir v2/sessions/me'
check_not test -e "$MNT/v2/sessions/me"
put "$MNT/ctl" 'mkdir backends/local/templates/u'
check test -d "$MNT/backends/local/templates/u"
put "$MNT/ctl" 'rmdir backends/local/templates/u'
check_not test -e "$MNT/backends/local/templates/u"

# in the sandbox's own files
V=$MNT/v2/files/workspace
put "$MNT/v2/ctl" 'mkdir files/workspace/d'
put "$MNT/ctl" 'mkdir v2/files/workspace/d/e'
check test -d "$V/d/e"
put "$MNT/v2/ctl" 'mv files/workspace/d/e files/workspace/f'
check test -d "$V/f"
check_eq "$(run v2 'ls /workspace; stat -c %u:%a /workspace/f')" $'d\nf\n0:755'
expect_errno EEXIST put "$MNT/v2/ctl" 'mkdir files/workspace/f'
touch "$V/d/file"
expect_errno ENOTEMPTY put "$MNT/v2/ctl" 'rmdir files/workspace/d'
expect_errno EEXIST put "$MNT/v2/ctl" 'mv files/workspace/f files/workspace/d'
expect_errno ENOTDIR put "$MNT/v2/ctl" 'mkdir files/workspace/d/file/x'
expect_errno ENOENT put "$MNT/v2/ctl" 'mkdir files/workspace/none/x'
expect_errno EXDEV put "$MNT/ctl" 'mv v2/files/workspace/f dev/files/workspace/f'
expect_errno EPERM put "$MNT/v2/ctl" 'mv files/workspace/f jobs/f'
put "$MNT/v2/ctl" 'rmdir files/workspace/f'
check_not test -e "$V/f"
# nothing leads out: no link, neither the tree's nor one made inside, no .., nothing absolute
run v2 'ln -s / /workspace/out; ln -s d /workspace/in'
for path in workspace/x files/workspace/out/tmp/x files/workspace/in/x; do
	expect_error ELOOP "$MNT/v2/error" "mkdir '$path'" put "$MNT/v2/ctl" "mkdir $path"
done
for path in /tmp/x .. ../dev/jobs/x files/../../x '""' . files/workspace/..; do
	expect_errno EINVAL put "$MNT/v2/ctl" "mkdir $path"
	expect_errno EINVAL put "$MNT/v2/ctl" "rmdir $path"
	expect_errno EINVAL put "$MNT/v2/ctl" "mv $path jobs/x"
done
expect_errno ENOTEMPTY put "$MNT/v2/ctl" 'rmdir files/workspace/d'
check_eq "$(answer "$MNT/ctl" 'rmdir v2')" ok
check_not test -e "$MNT/v2"

# ---- the daemon is killed: what was held goes at the next start, the rest stays ----
sandbox h2
holder h2 >"$WORK/three" & three=$!
wait_for 20 grep -qs '^ok$' "$WORK/three"
uid=$(field "$MNT/h2/status" uid)
kill_cubefs
kill -KILL "$three"
wait "$three" 2>/dev/null || true
start_cubefs
check_not test -e "$MNT/h2"
check test -d "$D"
wait_for 30 eval '! ls "$STATE/cubes" | grep -q "$uid"'
