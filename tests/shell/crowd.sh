#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exposed ports under load and malice: very many connections, sides that never read or never stop, other users.
. "$(dirname "$0")/lib.sh"
require python3
ulimit -n 8192 2>/dev/null || ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -ge 3000 ] || skip 'a process may not open 3000 files here'
start_cubefs
sandbox dev
P=$MNT/dev/ports

# One process inside: `hold` answers the first byte by the end, `sink` never reads, `flood` never stops.
cat >"$MNT/dev/workspace/serve.py" <<'PY'
import asyncio
async def hold(r, w):
    await r.read(1); w.close()
async def sink(r, w):
    r._transport.pause_reading(); await asyncio.sleep(1000)
async def flood(r, w):
    try:
        while True: w.write(b'x' * 65536); await w.drain()
    except OSError: pass
async def main():
    for port, what in (81, hold), (9, sink), (19, flood):
        await asyncio.start_server(what, '127.0.0.1', port, backlog=4096)
    await asyncio.sleep(1000)
asyncio.run(main())
PY
mkdir "$MNT/dev/jobs/serve"
put "$MNT/dev/jobs/serve/cmd" 'ulimit -n 8192 2>/dev/null; exec python3 /workspace/serve.py'
mkdir "$P/81" "$P/9" "$P/19"
timeout 60 cat <>"$P/81/url" >/dev/null

client() { # PORT TEXT
	python3 -c "import socket, sys, time, os
port = $(field "$P/$1/status" port)
def connect():
    c = socket.create_connection(('127.0.0.1', port)); c.settimeout(60); return c
$2"
}

# ---- very many: a thousand are let in, the others wait their turn, all are served ----

client 81 "
many = [connect() for _ in range(1300)]
for c in many: c.sendall(b'\x00')
ends = 0
for c in many:
    ends += c.recv(1) == b''
    c.close()
print(ends)" >"$WORK/ends"
check_eq "$(cat "$WORK/ends")" 1300
client 81 "
many = [connect() for _ in range(1200)]
open('$WORK/in', 'w').close()
while not os.path.exists('$WORK/out'): time.sleep(0.02)" & crowd=$!
wait_for 60 test -e "$WORK/in"
full() { [ "$(field "$P/81/status" connections)" = 1000 ]; }
wait_for 60 full
# Nobody else is in the way of the others: verbs, files, other ports.
check_eq "$(run dev 'echo still')" still
check_eq "$(client 19 "print(len(connect().recv(1000)) > 0)")" True
touch "$WORK/out"
wait $crowd
empty() { [ "$(field "$P/81/status" connections)" = 0 ]; }
wait_for 60 empty

# ---- all ports of the daemon together: the same, whatever port they came through ----

put "$MNT/ctl" 'set port_connections=10'
client 81 "
other = $(field "$P/9/status" port)
many = [connect() for _ in range(15)]
late = [socket.create_connection(('127.0.0.1', other)) for _ in range(15)]
open('$WORK/in2', 'w').close()
while not os.path.exists('$WORK/out2'): time.sleep(0.02)
for c in late: c.close()
ends = 0
for c in many:
    c.sendall(b'\x00')
    ends += c.recv(1) == b''
    c.close()
print(ends)" >"$WORK/ends2" & crowd=$!
wait_for 60 test -e "$WORK/in2"
there() { echo $(($(field "$P/81/status" connections) + $(field "$P/9/status" connections))); }
ten() { [ "$(there)" = 10 ]; }
wait_for 60 ten
put "$MNT/ctl" 'set port_connections=12' # those that wait are let in at once
twelve() { [ "$(there)" = 12 ]; }
wait_for 60 twelve
touch "$WORK/out2"
wait $crowd
check_eq "$(cat "$WORK/ends2")" 15
put "$MNT/ctl" 'set port_connections=4096'
wait_for 60 empty

# ---- who does not read makes the other side wait, and nothing grows ----

stuck='
c.setblocking(False)
sent = idle = 0
while idle < 50:
    try: sent += c.send(b"z" * 65536); idle = 0
    except BlockingIOError: idle += 1; time.sleep(0.02)
print(0 < sent < 32 * 1024 * 1024)'
check_eq "$(client 9 "c = connect(); c.sendall(b'\x00')$stuck")" True
# A hundred at once that take nothing of a flood: all else goes on.
client 19 "
many = [connect() for _ in range(100)]
for c in many: c.sendall(b'\x00')
open('$WORK/flooded', 'w').close()
while not os.path.exists('$WORK/drained'): time.sleep(0.02)" & flood=$!
wait_for 60 test -e "$WORK/flooded"
check_eq "$(run dev 'echo still')" still
check_eq "$(client 81 "c = connect(); c.sendall(b'\x00'); print(c.recv(1))")" "b''"
touch "$WORK/drained"
wait $flood

# ---- halves and nonsense from this side ----

check_eq "$(client 81 "import struct
for i in range(300):
    c = connect()
    if i % 3 == 0: c.sendall(b'GET / HTTP/1.1\r\nX: ')
    if i % 3 == 1: c.sendall(os.urandom(100))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); c.close()
print('done')")" 'done'
wait_for 60 empty

# ---- other users of this machine: HTTP with the word, nothing else ----

if [ "$TEST_UID" -eq 0 ]; then
	other() { # TEXT
		setpriv --reuid 65534 --regid 65534 --clear-groups python3 -c "import socket
def get(port, data):
    c = socket.create_connection(('127.0.0.1', port)); c.settimeout(60); c.sendall(data); got = b''
    try:
        while (b := c.recv(65536)) and len(got) < 1000: got += b
    except ConnectionResetError: pass
    return got[:12]
$1"
	}
	port=$(field "$P/19/status" port)
	check_eq "$(other "print(get($port, b'\x00'))")" "b''" 'what is no HTTP, of another user'
	check_match "$(other "print(get($port, b'GET / HTTP/1.1\r\n\r\n'))")" ' 401'
	word=$(field "$P/19/status" token)
	check_match "$(other "print(get($port, b'GET /?cubefs_token=$word HTTP/1.1\r\n\r\n'))")" xxxx
	put "$P/19/ctl" 'public yes'
	check_match "$(other "print(get($port, b'\x00'))")" xxxx
	put "$P/19/ctl" 'public no'
	check_eq "$(other "print(get($port, b'\x00'))")" "b''"
fi

# ---- the end with connections in all states ----

client 19 "
many = [connect() for _ in range(20)]
for c in many[:10]: c.sendall(b'\x00')
open('$WORK/last', 'w').close()
for c in many:
    try:
        while c.recv(65536): pass
    except ConnectionResetError: pass" & last=$!
wait_for 60 test -e "$WORK/last"
rmdir "$MNT/dev"
wait $last
