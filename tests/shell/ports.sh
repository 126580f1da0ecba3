#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ports/: what listens inside is reached from here: HTTP with the word of its url, WebSocket, plain TCP, sockets.
. "$(dirname "$0")/lib.sh"
require curl python3
start_cubefs
sandbox dev
D=$MNT/dev P=$MNT/dev/ports

# The servers inside: `head` answers each request with what it got, `echo` gives back all at the end of its input,
# `greet` speaks first, `sink` never reads, `flood` never stops.
cat >"$D/workspace/serve.py" <<'PY'
import os, socket, sys, threading
def head(c):
    f = c.makefile('rwb')
    while True:
        lines = []
        while (l := f.readline()) not in (b'\r\n', b'\n', b''):
            lines.append(l)
        if not lines: return
        n = sum(int(l.split(b':')[1]) for l in lines if l.lower().startswith(b'content-length:'))
        body = b''.join(lines) + f.read(n)
        f.write(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(body) + body); f.flush()
def echo(c):
    got = b''
    while (b := c.recv(65536)): got += b
    c.sendall(b'%d ' % len(got) + got[:100])
def greet(c):
    c.sendall(b'220 hello\r\n'); c.sendall(b'said ' + c.recv(100))
def sink(c): threading.Event().wait()
def flood(c):
    while True: c.sendall(b'x' * 65536)
def hold(c):
    c.recv(1)
def serve(address, what):
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ':' in address[0] else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(address); s.listen(2000)
    def one(c):
        with c:
            try: what(c)
            except OSError: pass
    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
threading.stack_size(65536)
for address, what in [(('127.0.0.1', 8000), head), (('0.0.0.0', 7), echo), (('::1', 8006), head), (('127.0.0.1', 25), greet),
                      (('127.0.0.1', 9), sink), (('127.0.0.1', 19), flood), (('127.0.0.1', 81), hold),
                      ('/workspace/app.sock', head), ('\0name', head)]:
    threading.Thread(target=serve, args=(address, what)).start()
PY
serve() {
	mkdir "$D/jobs/serve"
	put "$D/jobs/serve/cmd" 'rm -f /workspace/app.sock; exec python3 /workspace/serve.py'
}

url() { # PORT: of its url file
	cat "$P/$1/url"
}

# A client in Python: `port` is this side's of exposed port $1, the rest is its text.
client() { # PORT TEXT
	python3 -c "import socket, sys
port = $(field "$P/$1/status" port)
def connect():
    c = socket.create_connection(('127.0.0.1', port)); c.settimeout(30); return c
def all(c):
    got = b''
    while (b := c.recv(65536)): got += b
    return got
$2"
}

# ---- the directory ----

check_eq "$(ls "$P")" open
check_eq "$(cat "$P/open")" '' 'nothing listens yet'
for bad in 0 65536 080 -1 x 1.5 'unix:' 'unix:relative' 'unix:%2f' 'unix:%2Fa%2' 'abstract:' 'udp:7' '8000 '; do
	expect_error EINVAL "$D/error" . mkdir "$P/$bad"
done
expect_errno ENAMETOOLONG mkdir "$P/unix:%2F$(printf 'a%.0s' {1..108})"
expect_error EINVAL "$D/error" 'written unix:%2Fa' mkdir "$P/unix:%2fa"
mkdir "$P/8000"
expect_errno EEXIST mkdir "$P/8000"
expect_errno EPERM mv "$P/8000" "$P/8001"
expect_errno ENOENT touch "$P/file"
check_eq "$(ls "$P" | sort | tr '\n' ' ')" '8000 open '
check_eq "$(ls "$P/8000" | sort | tr '\n' ' ')" 'ctl status url '
check_eq "$(stat -c %a "$P/8000/url" "$P/8000/status" "$P/8000/ctl" | tr '\n' ' ')" '600 400 644 '
check_eq "$(field "$P/8000/status" listening)" no
check_match "$(url 8000)" "^http://127\.0\.0\.1:$(field "$P/8000/status" port)/\?cubefs_token=[0-9a-f-]+$"
check grep -q '"event":"port.opened"' "$MNT/events"
check_match "$(curl -sS "$(url 8000)")" 'nothing listens'
check_eq "$(curl -s -o /dev/null -w '%{http_code}' "$(url 8000)")" 502

# ---- url waits until something answers ----

cat <>"$P/8000/url" >"$WORK/url" & waiter=$!
serve
wait $waiter
check_eq "$(cat "$WORK/url")" "$(url 8000)"
check_eq "$(field "$P/8000/status" listening)" yes
wait_for 20 grep -q '^abstract:name - python3' "$P/open"
check grep -qx '8000 127.0.0.1 python3' "$P/open"
check grep -qx '7 0.0.0.0 python3' "$P/open"
check grep -qx '8006 ::1 python3' "$P/open"
check grep -q '^unix:%2Fworkspace%2Fapp.sock - python3' "$P/open"

# ---- HTTP: the word, and that it stays outside ----

check_match "$(curl -sS "$(url 8000)")" 'GET / HTTP/1.1'
token=$(field "$P/8000/status" token) port=$(field "$P/8000/status" port) base=http://127.0.0.1:$(field "$P/8000/status" port)
code() { # CURL'S WORDS
	curl -s -o "$WORK/body" -w '%{http_code}' "$@"
}
check_eq "$(code "$base/")" 401
check_eq "$(code "$base/?cubefs_token=${token%?}")" 401
check_eq "$(code "$base/?cubefs_token=$(tr 0-9a-f 1-9a-f0 <<<"$token")")" 401
check_eq "$(code "$base/?cubefs_token=")" 401
check_eq "$(code -H "X-Cubefs-Token: ${token/0-1-/0-2-}" "$base/")" 401
check_eq "$(code "$base/a?x=1&cubefs_token=$token&y=2")" 200
check grep -q '^GET /a?x=1&y=2 HTTP/1.1' "$WORK/body"
check_eq "$(code -H "X-Cubefs-Token: $token" -H 'X-Other: stays' "$base/b")" 200
check grep -q '^X-Other: stays' "$WORK/body"
check_not grep -qi cubefs "$WORK/body"
check_eq "$(code -H "X-Cubefs-Token: $token" -H "Referer: $base/?cubefs_token=$token" -b 'cubefs_other=1; mine=2' "$base/")" 200
check_not grep -qi cubefs "$WORK/body"
check grep -q '^Cookie: mine=2' "$WORK/body"
# A body, and several requests on one connection: each one is looked at.
head -c 300000 /dev/zero | tr '\0' b >"$WORK/post"
check_eq "$(code -H "X-Cubefs-Token: $token" --data-binary @"$WORK/post" "$base/post")" 200
check_eq "$(tail -c 300000 "$WORK/body" | cmp - "$WORK/post" && echo same)" same
check_eq "$(client 8000 "c = connect()
ask = lambda word: c.sendall(b'GET / HTTP/1.1\r\nHost: x\r\nX-Cubefs-Token: %s\r\n\r\n' % word)
ask(b'$token'); first = c.recv(65536); ask(b'$token'); second = c.recv(65536); ask(b'no'); third = all(c)
print(first[9:12], second[9:12], third[9:12], b'oken' in first + second)")" "b'200' b'200' b'401' False"

# A browser is sent to the same address without the word, with a cookie that opens this port and no other.
check_eq "$(code -H 'Accept: text/html' -D "$WORK/headers" "$base/page?cubefs_token=$token&q=1")" 303
check grep -q $'^Location: /page?q=1\r' "$WORK/headers"
cookie=$(sed -n 's/^Set-Cookie: \([^;]*\);.*/\1/p' "$WORK/headers")
check grep -q 'HttpOnly; SameSite=Lax' "$WORK/headers"
check_eq "$(code -b "$cookie" "$base/page?q=1")" 200
check_not grep -qi cubefs "$WORK/body"
check_eq "$(code -b "$cookie" -H 'Origin: http://evil.example' "$base/")" 401
check_eq "$(code -b "$cookie" -H "Origin: $base" "$base/")" 200
check_eq "$(code -b "$cookie" -H 'Sec-Fetch-Site: same-site' "$base/")" 401
mkdir "$P/7"
check_eq "$(code -b "$cookie" "http://127.0.0.1:$(field "$P/7/status" port)/")" 401

# Nonsense in the shape of HTTP is refused, and nothing of it goes in.
check_match "$(client 8000 "c = connect(); c.sendall(b'GET / HTTP/1.1\r\nX: y\r\n folded\r\n\r\n'); print(all(c)[:12])")" 400
check_match "$(client 8000 "c = connect(); c.sendall(b'GET /%s HTTP/1.1\r\n\r\n' % (b'a' * 6000)); print(all(c)[:12])")" 401
check_match "$(client 8000 "c = connect(); c.sendall(b'GET / HTTP/1.1\r\nA: ' + b'a' * 40000); print(all(c)[:12])")" 431

# ---- sign, revoke, public, name, listen ----

check_eq "$(exec 3<>"$P/8000/ctl"; echo 'sign 1000' >&3; cat <&3)" "ok url=$(url 8000)"
check_eq "$(code "$base/?cubefs_token=$token")" 401 'an earlier word'
check_match "$(curl -sS "$(url 8000)")" '^GET /'
check_match "$(field "$P/8000/status" expires)" '^20'
put "$P/8000/ctl" 'sign 1'
ended() { [ "$(field "$P/8000/status" token)" = - ]; }
short=$(url 8000)
wait_for 20 ended
check_eq "$(code "$short")" 401 'after its time'
put "$P/8000/ctl" sign
short=$(url 8000)
put "$P/8000/ctl" revoke
check_eq "$(code "$short")" 401 'after revoke'
check_eq "$(url 8000)" "$base/"
put "$P/8000/ctl" 'public yes'
check_eq "$(code "$base/")" 200
check_eq "$(code -b "$cookie" "$base/")$(grep -ci cubefs "$WORK/body" || true)" 2000
put "$P/8000/ctl" 'public no'
check_eq "$(code "$base/")" 401
put "$P/8000/ctl" sign
put "$P/8000/ctl" 'name web'
check_eq "$(field "$P/8000/status" name)" web
for bad in 'sign 0' 'sign x' 'sign 1 2' 'public maybe' 'name' 'name a/b' 'listen 80' 'listen localhost:80' 'listen ::1:80' 'listen 1.2.3.4.5:1' 'listen 127.0.0.1:65536' open; do
	expect_errno EINVAL put "$P/8000/ctl" "$bad"
done
expect_error EADDRINUSE "$D/error" 'cannot listen' put "$P/8000/ctl" "listen 127.0.0.1:$(field "$P/7/status" port)"
check_match "$(curl -sS "$(url 8000)")" '^GET /' 'after a refused listen'
put "$P/8000/ctl" 'listen 127.0.0.2:0'
check_match "$(url 8000)" '^http://127.0.0.2:'
check_match "$(curl -sS "$(url 8000)")" '^GET /'
check_eq "$(curl -s -o /dev/null "$base/" || echo $?)" 7 'the old place'
put "$P/8000/ctl" "listen 127.0.0.1:$port"

# ---- what is no HTTP: one's own processes pass, half-close, who speaks first ----

check_eq "$(client 7 "c = connect(); c.sendall(b'\x00binary\n'); c.shutdown(socket.SHUT_WR); print(all(c))")" "b'8 \\x00binary\\n'"
check_eq "$(client 7 "c = connect(); c.sendall(b'no end of line'); c.shutdown(socket.SHUT_WR); print(all(c))")" "b'14 no end of line'"
check_eq "$(client 7 "c = connect(); c.shutdown(socket.SHUT_WR); print(all(c))")" "b'0 '"
check_eq "$(client 7 "import threading
c = connect(); n = 20000000
threading.Thread(target=lambda: (c.sendall(b'z' * n), c.shutdown(socket.SHUT_WR))).start()
print(all(c)[:12])")" "b'20000000 zzz'"
mkdir "$P/25"
check_eq "$(client 25 "c = connect(); print(c.recv(100)); c.sendall(b'HELO'); print(all(c))")" $'b\'220 hello\\r\\n\'\nb\'said HELO\''

# ---- IPv6, unix and abstract sockets ----

mkdir "$P/8006" "$P/unix:%2Fworkspace%2Fapp.sock" "$P/abstract:name"
for one in 8006 unix:%2Fworkspace%2Fapp.sock abstract:name; do
	check_match "$(curl -sS "$(url $one)")" '^GET / HTTP/1.1' "$one"
	check_eq "$(field "$P/$one/status" listening)" yes "$one"
done
# A link inside leads nowhere but inside.
python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind('$WORK/outside.sock')"
run dev "ln -s $WORK/outside.sock /workspace/out.sock; ln -s /workspace/app.sock /workspace/in.sock"
mkdir "$P/unix:%2Fworkspace%2Fout.sock" "$P/unix:%2Fworkspace%2Fin.sock"
check_eq "$(code "$(url unix:%2Fworkspace%2Fout.sock)")" 502
check_match "$(curl -sS "$(url unix:%2Fworkspace%2Fin.sock)")" '^GET /'
rmdir "$P/unix:%2Fworkspace%2Fout.sock" "$P/unix:%2Fworkspace%2Fin.sock" "$P/25"

# ---- rmdir cuts what is connected ----

check_eq "$(client 7 "import os
c = connect(); c.sendall(b'\x00'); os.rmdir('$P/7')
try: print(c.recv(10))
except ConnectionResetError: print(b'')")" "b''"
check grep -q '"event":"port.closed"' "$MNT/events"
check_eq "$(curl -s -o /dev/null "http://127.0.0.1:$(field "$P/8006/status" port)/" -w '%{http_code}')" 401

# ---- pause, stop, start ----

put "$D/ctl" pause
check_match "$(curl -sS "$(url 8000)")" '^GET /' 'a connection resumes'
check_eq "$(field "$D/status" state)" running
before=$(url 8000)
put "$D/ctl" stop
check_eq "$(code "$before")" 503
check_eq "$(cat "$P/open")" ''
expect_errno EHOSTDOWN mkdir "$P/99"
expect_errno EHOSTDOWN cat <>"$P/8000/url"
put "$D/ctl" start
rmdir "$D/jobs/serve"
serve
check_eq "$(timeout 60 cat <>"$P/8000/url")" "$before"
check_match "$(curl -sS "$before")" '^GET /'

# ---- kept over a restore, not copied by a fork ----

ports=$(ls "$P")
mkdir "$D/checkpoints/cp"
put "$D/ctl" 'restore cp'
check_eq "$(ls "$P")" "$ports"
check_eq "$(url 8000)" "$before" 'the url after a restore'
put "$D/ctl" 'fork child from=cp'
check_eq "$(ls "$MNT/child/ports")" open
check_eq "$(field "$MNT/child/status" ports || true)" ''
rmdir "$MNT/child"
rmdir "$D/jobs/serve"
serve
check_match "$(curl -sS "$(timeout 60 cat <>"$P/8000/url")")" '^GET /'

# ---- the end of the daemon, kept over it ----

python3 -c "import socket, time
c = socket.create_connection(('127.0.0.1', $port)); c.sendall(b'\x00'); time.sleep(100)" & client=$!
kill_cubefs
kill $client
start_cubefs
wait_for 60 state_is dev running
check_eq "$(url 8000)" "$before" 'the url after a remount'
check_match "$(curl -sS "$(timeout 60 cat <>"$P/8000/url")")" '^GET /'
check_eq "$(field "$P/8000/status" name)" web
check_eq "$(ls "$P" | sort | tr '\n' ' ')" '8000 8006 abstract:name open unix:%2Fworkspace%2Fapp.sock '

# ---- at creation ----

expect_error EINVAL "$MNT/error" 'ports=.*70000' put "$MNT/ctl" 'create two ports=80,70000'
expect_error EINVAL "$MNT/error" 'twice' put "$MNT/ctl" 'create two ports=80,80'
put "$MNT/ctl" 'create two ports=8000,abstract:name'
check_eq "$(ls "$MNT/two/ports" | sort | tr '\n' ' ')" '8000 abstract:name open '
check_eq "$(code "$(cat "$MNT/two/ports/8000/url")")" 502
check_eq "$(code "$(cat "$MNT/two/ports/8000/url" | sed "s/=.*/=$token/")")" 401 'the word of another'
old=$(cat "$MNT/two/ports/8000/url")
rmdir "$MNT/two"
check_eq "$(curl -s -o /dev/null "$old" || echo $?)" 7 'after the end of its sandbox'
