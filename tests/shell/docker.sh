#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Containers as sandboxes: an engine that is not there; as root, one of our own, a daemon that is killed. What others do
# at the engine is in docker_others.sh.
. "$(dirname "$0")/lib.sh"
require curl
CONF=$WORK/cubefs.conf

# ---- nobody there ----

printf '[backend docker]\nurl = unix://%s/nobody\ntemplate = cubefs-test\n' "$WORK" >"$CONF"
start_cubefs --config "$CONF"
expect_error EHOSTUNREACH "$MNT/error" "nobody listens at $WORK/nobody" put "$MNT/ctl" 'create a'
check_not test -e "$MNT/a"
mkdir "$MNT/b"
wait_for 20 state_is b error
check_match "$(tail -n 1 "$MNT/b/error")" 'EHOSTUNREACH: .*nobody listens'
expect_errno EHOSTDOWN put "$MNT/b/exec" true
rmdir "$MNT/b"
expect_errno EINVAL put "$MNT/ctl" 'create c nosuchkey=1'
check_match "$(cubefs doctor --config "$CONF" 2>&1 || true)" 'nobody listens'
stop_cubefs
printf '[backend docker]\nurl = gopher://x\n' >"$CONF"
check_not cubefs -f --config "$CONF" --state "$STATE" "$MNT" 2>"$WORK/said"
check_match "$(cat "$WORK/said")" 'unix:///PATH'
if [ "$TEST_UID" -ne 0 ]; then
	# What could not be ended while nobody answered is kept for when somebody does.
	check_eq "$(find "$STATE/cubes" -maxdepth 1 -name '*.removed' | wc -l)" 2
	rm -rf "$STATE"/cubes/*.removed
	exit 0
fi

# ---- an engine ----

start_engine docker
start_cubefs --config "$CONF"
sandbox dev label.who=me env.COLOR=blue memory=256M host.db=10.1.2.3
check_eq "$(run dev 'cat /etc/name; id -u; pwd; hostname; echo $COLOR')" $'test\n0\n/workspace\ndev\nblue'
check_eq "$(run dev 'cd /tmp; X=1')" ''
check_eq "$(run dev 'pwd; echo $X')" $'/tmp\n1'
put "$MNT/dev/exec" 'exit 7'
check_eq "$(cat "$MNT/dev/exit")" 7
check_match "$(run dev 'cat /etc/hosts')" '10\.1\.2\.3[[:space:]]+db'
id=cubefs-$(field "$MNT/dev/status" id)
check_match "$(api GET "/containers/$id/json")" '"Memory":268435456'
check_match "$(api GET "/containers/$id/json")" '"cubefs.label.who":"me"'
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$MNT/backends/docker/sandboxes")" '^[0-9a-f]{16} running dev'
check_eq "$(field "$MNT/backends/docker/status" reachable)" yes
check_match "$(field "$MNT/backends/docker/status" version)" '^Docker [0-9.]+'
# templates: what the engine has, a directory, an archive
T=$MNT/backends/docker/templates
check_match "$(field "$T/cubefs-test/status" state)" ready
mkdir "$WORK/root" && cp -a "$D/image/." "$WORK/root" && echo other >"$WORK/root/etc/name"
mkdir "$T/Own_1:a"
put "$T/Own_1:a/ctl" "import $WORK/root"
check_eq "$(field "$T/Own_1:a/status" state)" ready
put "$MNT/ctl" 'create own template=Own_1:a'
check_eq "$(run own 'cat /etc/name')" other
expect_errno EBUSY rmdir "$T/Own_1:a"
rmdir "$MNT/own"
wait_for 20 eval '[ "$(boxes)" = 1 ]'
tar -C "$WORK/root" -czf "$WORK/t.tar.gz" .
expect_errno EINVAL put "$T/Own_1:a/ctl" "import $WORK/t.tar.gz sha256=$(printf %064d 0)"
put "$T/Own_1:a/ctl" "import $WORK/t.tar.gz sha256=$(sha256sum "$WORK/t.tar.gz" | cut -d ' ' -f 1)"
check_match "$(cat "$T/Own_1:a/info")" "source $WORK/t.tar.gz"
mkdir "$T/alias"
put "$T/alias/ctl" 'import id:cubefs-test'
put "$MNT/ctl" 'create own template=alias'
check_eq "$(run own 'cat /etc/name')" test
rmdir "$MNT/own"
wait_for 20 eval '[ "$(boxes)" = 1 ]'
mkdir "$T/none"
expect_errno EREMOTEIO put "$T/none/ctl" 'import image:nowhere.invalid/x'
check_match "$(tail -n 1 "$T/none/log")" .
expect_errno EOPNOTSUPP put "$T/none/ctl" 'import http://127.0.0.1/t.tar'
rmdir "$T/none"
wait_for 20 rmdir "$T/alias" 2>"$WORK/said" # what was made of it is destroyed behind its rmdir
rmdir "$T/Own_1:a"

expect_errno ENOENT put "$MNT/ctl" 'create x template=no-such-image'
wait_for 20 eval '[ "$(boxes)" = 1 ]'

# ---- what is its own: machine id, host name, an account ----

machine() { # NAME: what its machine id has to be
	printf '%s%s' "$(field "$MNT/$1/status" id)" "$(field "$MNT/$1/status" id)"
}
check_eq "$(run dev 'cat /etc/machine-id')" "$(machine dev)"
check_not grep -q machine-id "$MNT/dev/changes"
put "$MNT/ctl" 'create own user=worker:1234 host.db=10.1.2.3'
check_eq "$(run own 'id -un; id -u; stat -c %U /workspace; echo ~; cat /etc/machine-id')" \
	$'worker\n1234\nworker\n/home/worker\n'"$(machine own)"
put "$MNT/own/ctl" restart
check_eq "$(run own 'id -u')" 1234
put "$MNT/own/ctl" reset
check_eq "$(run own 'hostname; id -u; cat /etc/machine-id')" $'own\n1234\n'"$(machine own)"
put "$MNT/own/ctl" 'fork third'
check_eq "$(run third 'hostname; cat /etc/machine-id')" $'third\n'"$(machine third)"
expect_error EINVAL "$MNT/error" 'user=nobody' put "$MNT/ctl" 'create bad user=nobody:1234'
rmdir "$MNT/own" "$MNT/third"
wait_for 20 eval '[ "$(boxes)" = 1 ]'

# ---- what it cannot be given is refused before anything is made ----

expect_error EOPNOTSUPP "$MNT/error" nvidia put "$MNT/ctl" 'create bad gpu=yes'
expect_error EOPNOTSUPP "$MNT/error" gpu put "$MNT/ctl" 'create bad require=gpu'
expect_error ENOSPC "$MNT/error" '14 volumes' put "$MNT/ctl" \
	"create bad $(for i in $(seq 15); do printf 'volume./v%s=v%s ' "$i" "$i"; done)"
check_eq "$(boxes)" 1
for i in "$MNT"/volumes/v*; do [ ! -d "$i" ] || rmdir "$i"; done

# ---- one of a pool has the name that it is called by, and keeps it ----

P=$MNT/backends/docker/pools/p
mkdir "$P"
put "$P/template" 'memory=64M'
put "$P/size" 1
wait_for 30 eval '[ "$(cat "$P/ready")" = 1 ]'
put "$MNT/ctl" 'create taken pool=p'
check_not grep -q cold "$MNT/taken/status"
check_eq "$(run taken 'hostname; cat /etc/hostname')" $'taken\ntaken'
put "$MNT/taken/ctl" restart
check_eq "$(run taken 'hostname; cat /etc/hostname')" $'taken\ntaken'
put "$MNT/taken/ctl" reset
check_eq "$(run taken hostname)" taken
rmdir "$P" "$MNT/taken"
wait_for 20 eval '[ "$(boxes)" = 1 ]'

# pause, stop and start, as verbs; the files stay
run dev 'echo kept > /workspace/f' >"$WORK/out"
put "$MNT/dev/ctl" pause
check_match "$(api GET "/containers/$id/json")" '"Paused":true'
check_eq "$(run dev 'cat /workspace/f')" kept
put "$MNT/dev/ctl" 'stop 5'
check_match "$(api GET "/containers/$id/json")" '"Running":false'
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat /workspace/f')" kept

# ---- files: both ways, running, paused and stopped; links lead nowhere ----

check_eq "$(cat "$MNT/dev/files/workspace/f")" kept
check_eq "$(cat "$MNT/dev/workspace/f")" kept
echo outside >"$MNT/dev/workspace/g"
check_eq "$(run dev 'cat g; stat -c %u g')" $'outside\n0'
run dev 'ln -s /etc/shadow l; ln -s ../../../../etc/shadow m; echo in > /tmp/t' >"$WORK/out"
check_eq "$(cat "$MNT/dev/files/tmp/t")" in
check_not cat "$MNT/dev/workspace/l" 2>"$WORK/said"
check_not cat "$MNT/dev/workspace/m" 2>"$WORK/said"
for dir in proc sys dev; do check_eq "$(ls -A "$MNT/dev/files/$dir")" ''; done
cp -r "$WORK/root/etc" "$MNT/dev/workspace/etc"
check_eq "$(run dev 'cat /workspace/etc/name')" other
put "$MNT/dev/ctl" 'stop 5'
check_eq "$(cat "$MNT/dev/workspace/g" "$MNT/dev/files/tmp/t")" $'outside\nin'
echo stopped >"$MNT/dev/workspace/s"
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat s; echo more >> s')" stopped
check_eq "$(cat "$MNT/dev/workspace/s")" $'stopped\nmore'
put "$MNT/dev/ctl" restart
run dev 'echo again >> s' >"$WORK/out"
check_eq "$(cat "$MNT/dev/workspace/s")" $'stopped\nmore\nagain'

# ---- a template that starts a service is ready when it answers ----

mkdir "$T/web"
put "$T/web/ctl" 'import id:cubefs-test'
put "$T/web/start" 'exec httpd -f -p 127.0.0.1:80 -h /etc'
put "$T/web/ready" 'port 80'
put "$T/web/services" 'http 80'
put "$MNT/ctl" 'create served template=web'
check_eq "$(curl -sS "$(sed 's,/?,/name?,' "$MNT/served/ports/80/url")")" test
check_eq "$(field "$MNT/served/ports/80/status" name)" http
rmdir "$MNT/served"
wait_for 20 rmdir "$T/web" 2>"$WORK/said"

# ---- ports: what listens inside is reached without a network, and by whom it is told ----

mkdir "$MNT/dev/ports/8000" "$MNT/dev/jobs/serve"
check_eq "$(field "$MNT/dev/ports/8000/status" listening)" no
put "$MNT/dev/jobs/serve/cmd" 'exec httpd -f -p 127.0.0.1:8000 -h /etc'
cat <>"$MNT/dev/ports/8000/url" >"$WORK/url"
check_eq "$(curl -sS "$(sed 's,/?,/name?,' "$WORK/url")")" test
check_eq "$(grep -v '^unix' "$MNT/dev/ports/open")" '8000 127.0.0.1 httpd'
put "$MNT/dev/ctl" pause
put "$MNT/dev/ctl" resume
check_eq "$(curl -sS "$(sed 's,/?,/name?,' "$WORK/url")")" test
put "$MNT/dev/ctl" 'restart'
check_eq "$(cat "$MNT/dev/ports/open")" ''
check_match "$(curl -sS "$(cat "$WORK/url")")" 'nothing listens'
rmdir "$MNT/dev/ports/8000"

# ---- the memory limit: which command it ended, and which not ----

mkdir "$MNT/dev/jobs/greedy" "$MNT/dev/jobs/killed"
put "$MNT/dev/jobs/greedy/cmd" 'exec awk "BEGIN { s = \"x\"; while (1) s = s s }"'
check_eq "$(cat <>"$MNT/dev/jobs/greedy/exit")" 137
check_eq "$(field "$MNT/dev/jobs/greedy/status" ended)" oom
put "$MNT/dev/jobs/killed/cmd" 'kill -KILL $$'
check_eq "$(cat <>"$MNT/dev/jobs/killed/exit")" 137
check_eq "$(field "$MNT/dev/jobs/killed/status" ended)" signal
wait_for 20 grep -q '"sandbox":"dev","event":"oom"' "$MNT/events"

# ---- volumes: files that two share, and that stay ----

mkdir "$MNT/volumes/data"
echo before >"$MNT/volumes/data/files/f"
sandbox user volume./data=data,ro
check_eq "$(run user 'cat /data/f; echo x 2>/dev/null > /data/g || echo refused')" $'before\nrefused'
check_eq "$(cat "$MNT/user/files/data/f")" before
expect_errno EBUSY rmdir "$MNT/volumes/data"
rmdir "$MNT/user"
wait_for 20 eval '[ "$(boxes)" = 1 ]'
check_eq "$(cat "$MNT/volumes/data/files/f")" before
rmdir "$MNT/volumes/data"
wait_for 20 eval '! api GET /volumes | grep -q cubefs-' # behind the rmdir

# ---- a stop takes the time that it was given, though an engine that is silent for so long has failed else ----

stop_cubefs
{ cat "$CONF"; echo 'timeout = 2'; } >"$WORK/short.conf"
start_cubefs --config "$WORK/short.conf"
mkdir "$MNT/dev/jobs/tidy"
put "$MNT/dev/jobs/tidy/cmd" "trap 'sleep 4; echo tidied; exit 0' TERM; echo up; while :; do sleep 0.1; done"
wait_for 10 test -s "$MNT/dev/jobs/tidy/stdout"
put "$MNT/dev/ctl" 'stop 60'
check_eq "$(cat "$MNT/dev/jobs/tidy/stdout")" $'up\ntidied'
put "$MNT/dev/ctl" start
stop_cubefs
start_cubefs --config "$CONF"

# ---- the daemon is killed while a job runs: nothing of it is lost ----

mkdir "$MNT/dev/jobs/long"
put "$MNT/dev/jobs/long/cmd" 'i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo $i; sleep 0.1; done; exit 3'
kill_cubefs
start_cubefs --config "$CONF"
check_eq "$(cat <>"$MNT/dev/jobs/long/exit")" 3
check_eq "$(cat "$MNT/dev/jobs/long/stdout")" "$(seq 40)"

rmdir "$MNT/dev"
wait_for 20 eval '[ "$(boxes)" = 0 ]'
stop_cubefs
check_eq "$(ls -A "$STATE/backends/docker/cubes")" ''
