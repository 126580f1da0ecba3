#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where 9P is served and who gets in: addresses, tokens, certificates, stdio, with a mount point and without.
. "$(dirname "$0")/lib.sh"
require python3 openssl
P9=$(cd "$(dirname "$0")/../p9" && pwd)

refused() { # REGEX OPTION...: does not start, and says why
	local regex=$1 out
	shift
	if out=$(timeout 60 cubefs --state "$STATE" "$@" 2>&1); then fail "started: $*"; fi
	check_match "$out" "$regex" "message for $*"
	check_eq "$(wc -l <<<"$out")" 1 'lines of the message'
}

ask() { # ADDRESS ANAME [CA [CERT KEY]]: the entries of what is attached, or REFUSED and why
	PYTHONPATH=$P9 python3 -B - "$@" <<'END'
import sys
from client import Broken, Refused, Session
address, aname, *files = sys.argv[1:]
kind = dict(zip(("ca", "cert", "key"), files))
try:
    with Session(address, aname=aname, **kind) as s:
        print(*sorted(s.ls("/"))[:3])
except Refused as e:
    print("REFUSED", e.name)
except (Broken, OSError) as e:
    print("CLOSED")
END
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

PORT=$(free_port)
TLS_PORT=$(free_port)
sock=$WORK/sock

# what is no address, or would let in everybody
refused '--9p nonsense.*unix:PATH' --9p nonsense
refused '--9p wants an address' --9p
refused 'absolute' --9p unix:relative
refused 'HOST:PORT' --9p tcp:5640
refused 'HOST:PORT' --9p tcp:localhost:99999
refused 'no such host' --9p tcp:no-such-host.invalid:5640
refused 'every sandbox.*--9p-token-file' --9p tcp:0.0.0.0:"$PORT"
refused 'every sandbox.*ca' --9p tls:127.0.0.1:"$PORT"
refused 'nothere' --9p-token-file "$WORK/nothere" --9p tcp:127.0.0.1:"$PORT"
echo short >"$WORK/token"
refused 'wants a word of 16' --9p-token-file "$WORK/token" --9p tcp:127.0.0.1:"$PORT"
echo a-word-that-is-long-enough >"$WORK/token"
refused 'certificate' --9p-token-file "$WORK/token" --9p tls:127.0.0.1:"$PORT"
echo x >"$sock"
refused 'something else' --9p unix:"$sock"
rm "$sock"
printf '[9p]\nmsize = 1\n' >"$WORK/bad.conf"
refused 'msize.*4096' --config "$WORK/bad.conf" --9p unix:"$sock"
printf '[9p]\nnonsense = 1\n' >"$WORK/bad.conf"
refused 'nonsense' --config "$WORK/bad.conf" --9p unix:"$sock"

# certificates: a ca, a server's, a client's, and one of somebody else's
pem() { # NAME ISSUER
	openssl req -newkey rsa:2048 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" -subj "/CN=$1" 2>/dev/null
	openssl x509 -req -in "$WORK/$1.csr" -CA "$WORK/$2.pem" -CAkey "$WORK/$2.key" -CAcreateserial -days 2 \
		-extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) -out "$WORK/$1.pem" 2>/dev/null
}
for ca in ours others; do
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/$ca.key" -out "$WORK/$ca.pem" -days 2 \
		-subj "/CN=$ca" 2>/dev/null
done
pem server ours
pem client ours
pem stranger others
cat >"$WORK/conf" <<END
[9p]
certificate = $WORK/server.pem
key = $WORK/server.key
ca = $WORK/ours.pem
END

# several at once beside a mount
start_cubefs --config "$WORK/conf" --9p-token-file "$WORK/token" --9p unix:"$sock" --9p tcp:127.0.0.1:"$PORT" \
	--9p tls:127.0.0.1:"$TLS_PORT"
wait_for 60 test -S "$sock"
check_eq "$(stat -c %a "$sock")" 600
check_eq "$(ask unix:"$sock" '')" 'README backends clone'
check_eq "$(ask tcp:127.0.0.1:"$PORT" '')" 'REFUSED EACCES'
check_eq "$(ask tcp:127.0.0.1:"$PORT" wrong-word-of-some-length/)" 'REFUSED EACCES'
check_eq "$(ask tcp:127.0.0.1:"$PORT" a-word-that-is-long-enough/)" 'README backends clone'
check_eq "$(ask tls:127.0.0.1:"$TLS_PORT" a-word-that-is-long-enough/ "$WORK/ours.pem")" CLOSED
check_eq "$(ask tls:127.0.0.1:"$TLS_PORT" a-word-that-is-long-enough/ "$WORK/ours.pem" "$WORK/stranger.pem" \
	"$WORK/stranger.key")" CLOSED
check_eq "$(ask tls:127.0.0.1:"$TLS_PORT" '' "$WORK/ours.pem" "$WORK/client.pem" "$WORK/client.key")" 'REFUSED EACCES'
check_eq "$(ask tls:127.0.0.1:"$TLS_PORT" a-word-that-is-long-enough/volumes "$WORK/ours.pem" "$WORK/client.pem" \
	"$WORK/client.key")" ''
check_eq "$(ask tls:127.0.0.1:"$TLS_PORT" a-word-that-is-long-enough/ "$WORK/ours.pem" "$WORK/client.pem" \
	"$WORK/client.key")" 'README backends clone'
# the other side of the door: what is no TLS, and an older one
check_eq "$(ask tcp:127.0.0.1:"$TLS_PORT" '')" CLOSED
check_not timeout 20 openssl s_client -connect 127.0.0.1:"$TLS_PORT" -tls1_2 </dev/null >/dev/null 2>&1
check_match "$(cat "$LOG" "$STATE/cubefs.log" 2>/dev/null)" 'token is not the right one'
check_match "$(cat "$LOG" "$STATE/cubefs.log" 2>/dev/null)" 'cut: TLS: '
allow_log 'token is not the right one'
allow_log 'cut: '
stop_cubefs
check_not test -e "$sock"

# without a mount point; a socket that was left over is no hindrance
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$sock"
cubefs --state "$STATE" --9p unix:"$sock"
check_eq "$(ask unix:"$sock" '')" 'README backends clone'
refused 'already|in use|another' --9p unix:"$WORK/sock2"
STATE2=$STATE
STATE=$WORK/state2 refused 'somebody listens' --9p unix:"$sock"
STATE=$STATE2
pid=$(head -n 1 "$STATE/lock")
kill "$pid"
wait_for 60 daemon_ended "$pid"
check_not test -e "$sock"

# on the descriptors of whoever starts it; it ends with its client
python3 -B - "$STATE" "$P9" <<'END'
import socket, subprocess, sys
sys.path.insert(0, sys.argv[2])
from client import Session
ours, its = socket.socketpair()
daemon = subprocess.Popen(["cubefs", "--state", sys.argv[1], "--9p", "stdio"], stdin=its, stdout=its)
its.close()
with Session(peer=ours) as s:
    assert "README" in s.ls("/"), s.ls("/")
ours.close()
assert daemon.wait(60) == 0
END
