#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The root: names, creation by verb and by clone, list, events, error, renaming.
. "$(dirname "$0")/lib.sh"
start_cubefs
cd "$MNT"

check_eq "$(ls -A)" "$(printf '%s\n' README backends clone ctl error events list volumes)"
check_eq "$(stat -c %a README list error)" $'444\n444\n444'
check_eq "$(stat -c %a ctl events)" $'644\n644'
check_eq "$(stat -c '%U' README)" "$(id -un)"

# names
for name in -x .x 'a b' 'a:b' "a'b" ä $'a\nb' "$(printf 'x%.0s' {1..65})"; do
	expect_errno EINVAL mkdir -- "./$name"
done
for name in secrets chat help log metrics jobs doctor; do expect_errno EINVAL mkdir "$name"; done
for name in README ctl list clone events error backends volumes; do expect_errno EEXIST mkdir "$name"; done
long=$(printf 'x%.0s' {1..64})
mkdir "$long" A-1_.z
rmdir "$long" A-1_.z
expect_errno ENOENT touch nothing
expect_errno ENOENT ls nothing
expect_errno ENOENT rmdir nothing

# one of twenty
for i in {1..20}; do ( mkdir race 2>/dev/null && echo won >>"$WORK/won" || true ) & racers+=($!); done; wait "${racers[@]}"
check_eq "$(wc -l <"$WORK/won")" 1
expect_error EEXIST error "race" bash -c "echo 'create race' > ctl"
rmdir race

# create: returns when it runs, or leaves nothing behind
echo 'create one label.owner=me label.team="a b" env.X=1 pids=50' >ctl
check_eq "$(field one/status state)" running
check_eq "$(field one/status label.owner)" me
check_eq "$(run one 'echo $X')" 1
check_match "$(cat list)" '^one running local [^ ]+ [0-9]+ - .* label.owner=me label.team=a\\x20b$'
for line in 'create' 'create bad/name' 'create x nonsense=1' 'create x memory=lots' 'create x memory=' 'create x cpus=-1' \
	'create x net=everything' 'create x env.1A=x' 'create x template=nosuch' 'create x backend=nosuch' 'create x label.=x' \
	'create x command_timeout=x' 'create x y'; do
	if echo "$line" >ctl 2>/dev/null; then fail "accepted: $line"; fi
	check_not test -e x
done
expect_error EINVAL error 'nonsense' bash -c "echo 'create x nonsense=1' > ctl"
expect_error ENOENT error 'nosuch' bash -c "echo 'create x template=nosuch' > ctl"
expect_error ENOENT error 'nosuch' bash -c "echo 'create x backend=nosuch' > ctl"
grep -qE '^capabilities.* disk( |$)' backends/local/status || # (quota.sh)
	expect_error EOPNOTSUPP error 'disk' bash -c "echo 'create x disk=1G' > ctl"
expect_error EOPNOTSUPP error 'privileged' bash -c "echo 'create x privileged=yes' > ctl"
check_not test -e x

# comments, several lines in one write, the rest after a failure is not done
printf '# nothing\n\ncreate m1\ncreate m2 # with a comment\n' >ctl
check test -d m1 -a -d m2
printf 'create m3\ncreate m2\ncreate m4\n' | cat >ctl 2>/dev/null || true # (one write; the builtin makes three)
check test -d m3
check_not test -e m4
echo 'destroy m1 m2 m3' >ctl
check_not test -e m1 -o -e m2 -o -e m3
expect_errno ENOENT bash -c "echo 'destroy m1' > ctl"
expect_errno EINVAL bash -c "echo nonsense > ctl"

# a line without its newline runs at the close
printf 'create nonl' >ctl
check_eq "$(field nonl/status state)" running
rmdir nonl

# rename: open files, jobs and channels go on
mkdir one/jobs/j
echo 'sleep 1; echo renamed' >one/jobs/j/cmd
exec 3<>one/jobs/j/output
mv one two
check_not test -e one
check_eq "$(cat <&3)" renamed
exec 3>&-
check_eq "$(cat two/jobs/j/exit)" 0
check_eq "$(run two 'echo $X')" 1
mkdir three
expect_errno EPERM mv two three
expect_errno EINVAL python3 -c 'import os; os.rename("two", "b d")'
expect_errno EPERM mv README x
echo 'rename two four' >ctl
check test -d four
expect_errno EEXIST bash -c "echo 'rename four three' > ctl"
expect_errno ENOENT bash -c "echo 'rename two five' > ctl"
rmdir three

# events
for event in created running destroyed job.started job.ended; do
	check grep -q "\"event\":\"$event\"" events
done
check_eq "$(head -n 1 events | python3 -c 'import json,sys; print(sorted(set(json.loads(sys.stdin.readline())) - {"detail"}))')" \
	"['event', 'sandbox', 'time']"

# error: time, process, operation, errno name, sentence
check_match "$(tail -n 1 error)" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z [^ ]+\[[0-9]+\] .*: E[A-Z]+: .+$'

# info.json
check_eq "$(python3 -c 'import json,sys; o=json.load(open("four/info.json")); print(o["name"], o["state"], o["labels"]["team"])')" 'four running a b'

# backends
check_eq "$(ls backends)" local
check_eq "$(ls backends/local | tr '\n' ' ')" 'ctl pools sandboxes status templates '
check_match "$(cat backends/local/status)" 'reachable yes'
check_match "$(cat backends/local/status)" 'store (btrfs snapshots|copies that share|plain copies)'
check_match "$(cat backends/local/status)" 'capabilities .*exec.*files'
check ls backends/local/templates/host >/dev/null

# what the root does not know
expect_errno EPERM ln -s x README2
expect_errno EACCES bash -c 'echo x > README'
expect_errno EACCES bash -c 'echo x > list'
expect_errno EACCES bash -c 'echo x > four/status'
expect_errno EPERM chmod 777 README
expect_errno ENOENT bash -c 'echo x > four/nothing'
cd /
