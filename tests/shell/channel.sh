#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One descriptor on exec: a private conversation; and the other channels.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
sandbox dev
D=$MNT/dev

exec 3<>"$D/exec"
echo 'echo mine; cd /usr' >&3
check_eq "$(cat <&3)" mine
echo 'pwd' >&3
check_eq "$(cat <&3)" /usr
exec 3>&-

# several at once, each its own output
for i in 1 2 3 4 5 6 7 8; do
	(
		exec 3<>"$D/exec"
		for k in 1 2 3 4 5; do
			echo "echo $i-$k; echo err-$i-$k >&2" >&3
			[ "$(cat <&3)" = "$i-$k
err-$i-$k" ] || exit 1
		done
	) &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || fail 'somebody got the output of another'; done

# without writing: the latest command from its first byte to its end
run dev 'echo latest' >/dev/null
check_eq "$(cat <>"$D/exec")" latest

# it streams while the command runs, poll works, non-blocking reads say EAGAIN
cat >"$WORK/poll.py" <<'E2'
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(fd, b'echo one; sleep 0.5; echo two\n')
os.set_blocking(fd, False)
got, idle = b'', 0
while True:
    p = select.poll(); p.register(fd, select.POLLIN)
    assert p.poll(10000), 'poll timed out'
    try:
        data = os.read(fd, 100)
    except BlockingIOError:
        idle += 1
        assert idle < 100, 'poll says ready and read says EAGAIN'
        continue
    if not data: break
    got += data
assert got == b'one\ntwo\n', got
os.write(fd, b'echo three\n')
e = select.epoll(); e.register(fd, select.EPOLLIN | select.EPOLLET)
os.set_blocking(fd, True)
assert os.read(fd, 100) == b'three\n'
E2
check python3 "$WORK/poll.py" "$D/exec"
check python3 -c "
f = open('$D/exec', 'rb+', buffering=0)
f.write(b'echo from python\n')
assert f.read(100) == b'from python\n'
assert f.read(100) == b''
"

# the last close while its own command runs interrupts it
exec 3<>"$D/exec"
echo "sh -c 'trap \"echo interrupted > /tmp/int; exit 9\" INT; sleep 60 & wait'" >&3
( cat <&3 >/dev/null ) & reader=$!
sleep 0.3
kill -KILL $reader
wait $reader 2>/dev/null || true
exec 3>&-
wait_for 15 test -s "$D/files/tmp/int"
check_eq "$(run dev 'echo alive')" alive

# ctl opened for both answers each verb, then end of file
exec 4<>"$D/ctl"
echo 'set command_timeout=0' >&4
check_match "$(cat <&4)" '^ok'
check_not bash -c 'echo nonsense >&4' 2>/dev/null
check_match "$(cat <&4)" '^EINVAL .*nonsense'
check_eq "$(cat <&4)" '' 'an answer is given once'
exec 4>&-

# clone gives a name, then the end; the thing stays
name=$(cat <>"$MNT/clone")
check_eq "$(run "$name" 'echo cloned')" cloned
rmdir "$MNT/$name"
exec 3<>"$D/jobs/clone"
read -r number <&3
check_match "$number" '^[0-9]+$'
echo 'echo numbered' >"$D/jobs/$number/cmd"
exec 3>&-
check_eq "$(cat <>"$D/jobs/$number/output")" numbered
number=$(cat <>"$D/jobs/clone")
check_not test -e "$D/jobs/$number" # got no command: forgotten at the close

# logs and events as channels give what comes
timeout 5 cat <>"$MNT/events" >"$WORK/events" & follower=$!
timeout 5 cat <>"$D/logs" >"$WORK/logs" & follower2=$!
sleep 0.3
mkdir "$D/jobs/seen"; echo 'echo i was here' >"$D/jobs/seen/cmd"
wait_for 5 grep -q '"event":"job.ended"' "$WORK/events"
wait_for 5 grep -q 'i was here' "$WORK/logs"
check_not grep -q cloned "$WORK/logs"
kill $follower $follower2
wait $follower $follower2 2>/dev/null || true

# a plain open for writing of a channel that takes none
expect_errno EPERM bash -c "echo x >'$D/logs'"
expect_errno EPERM bash -c "echo x >'$MNT/events'"
