#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sandbox that is being created: what needs it running waits, all else answers at once; a creation that fails, or
# that is called off.
. "$(dirname "$0")/lib.sh"
require busybox python3
start_cubefs
T=$MNT/backends/local/templates
mkdir -p "$WORK/root/bin" "$T/slow"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat echo; do ln -s busybox "$WORK/root/bin/$name"; done
tar -C "$WORK/root" -cf "$WORK/t.tar" .
# A server that answers when there is a file `go`.
cat >"$WORK/server.py" <<'PY'
import http.server, os, sys, time
class Late(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        while not os.path.exists('go'): time.sleep(0.02)
        super().do_GET()
    def log_message(self, *a): pass
os.chdir(sys.argv[1])
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Late)
open('port', 'w').write(str(s.server_address[1]))
s.serve_forever()
PY
python3 "$WORK/server.py" "$WORK" 2>/dev/null & on_exit kill $!
wait_for 20 test -s "$WORK/port"
begin() { # an import that goes on until there is `go`
	rm -f "$WORK/go"
	put "$T/slow/ctl" "import http://127.0.0.1:$(cat "$WORK/port")/t.tar sha256=$(sha256sum "$WORK/t.tar" | cut -d ' ' -f 1) &"
	check_match "$(field "$T/slow/status" state)" '^importing'
}

begin
put "$MNT/ctl" 'create dev template=slow &'
D=$MNT/dev
wait_for 20 test -d "$D"
check_eq "$(field "$D/status" state)" creating
check_match "$(cat "$MNT/list")" '^dev creating local slow '

# at once: a look, a plain read, a text of its own, a name for a job
quick() { # COMMAND...
	timeout 20 "$@" >"$WORK/quick" 2>&1 || fail "waits, or fails: $* ($(cat "$WORK/quick"))"
}
quick ls -l "$D" "$D/files" "$D/jobs" "$D/sessions" "$D/checkpoints"
quick cat "$D/status" "$D/info.json" "$D/exec" "$D/exit" "$D/logs" "$D/env" "$D/error" "$D/ctl"
quick bash -c "echo A=b >>'$D/env'"
quick bash -c "echo 'set label.x=1' >'$D/ctl'"
quick mkdir "$D/jobs/j"
quick bash -c "echo in >'$D/jobs/j/stdin'"
quick cat "$D/jobs/j/status"
check_eq "$(timeout 20 cat <>"$D/exit")" - 'no command was begun'

# what waits, and can be interrupted: all at once, for two seconds
cat >"$WORK/open.py" <<'PY'
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.open(sys.argv[1], os.O_RDWR if sys.argv[2] == 'rw' else os.O_WRONLY)
PY
WAITS=() WHAT=()
waits() { # COMMAND...
	(timeout -s INT 2 "$@" >/dev/null 2>&1) &
	WAITS+=($!) WHAT+=("$*")
}
waits python3 "$WORK/open.py" "$D/exec" w
waits python3 "$WORK/open.py" "$D/exec" rw
waits python3 "$WORK/open.py" "$D/jobs/j/cmd" w
waits python3 "$WORK/open.py" "$D/jobs/j/argv" w
waits stat "$D/files/etc"
waits mkdir "$D/sessions/s"
grep -q '^missing ports ' "$MNT/backends/local/status" || waits mkdir "$D/ports/80"
waits mkdir "$D/checkpoints/c"
for i in "${!WAITS[@]}"; do
	code=0
	wait "${WAITS[i]}" || code=$?
	[ "$code" -eq 124 ] || [ "$code" -eq 130 ] || fail "does not wait ($code): ${WHAT[i]}"
done
check_eq "$(field "$D/status" state)" creating
check_eq "$(ls "$D/sessions" "$D/checkpoints" | grep -cx '[sc]' || true)" 0

# those that wait go on as soon as it runs, and with what was written meanwhile
(run dev 'echo $A; pwd') >"$WORK/out" & writer=$!
(put "$D/jobs/j/cmd" cat) & job=$!
(ls "$D/files/bin" >"$WORK/ls") & lister=$!
(mkdir "$D/sessions/s") & session=$!
touch "$WORK/go"
wait $writer $job $lister $session
check_eq "$(cat "$WORK/out")" $'b\n/workspace'
check_eq "$(cat <>"$D/jobs/j/output")" in
check grep -qx busybox "$WORK/ls"
check test -d "$D/sessions/s"
check_eq "$(field "$D/status" label.x)" 1
wait_for 20 grep -q '^done create ok' "$MNT/ctl"
rmdir "$D"

# called off: a creation that waits for an import that is cancelled leaves nothing, and who waited is told
gone() { rmdir "$T/slow" 2>/dev/null; }
wait_for 20 gone
mkdir "$T/slow"
begin
put "$MNT/ctl" 'create dev template=slow &'
wait_for 20 test -d "$D"
(put "$D/exec" true) 2>"$WORK/said" & writer=$!
put "$T/slow/ctl" cancel
code=0
wait $writer || code=$?
[ "$code" -ne 0 ] || fail 'a command ran in a sandbox that never was'
wait_for 20 eval '! test -e "$D"'
wait_for 20 grep -q '^done create E' "$MNT/ctl"

# rmdir while it is being created: the name is free at once
begin
put "$MNT/ctl" 'create dev template=slow &'
wait_for 20 test -d "$D"
rmdir "$D"
check_not test -e "$D"
sandbox dev
check_eq "$(run dev 'echo other')" other
touch "$WORK/go"
wait_for 30 eval '[ "$(field "$T/slow/status" state)" = ready ]'
check_eq "$(cut -d ' ' -f 1-3 "$MNT/list")" 'dev running local'
rmdir "$D"
wait_for 20 gone
