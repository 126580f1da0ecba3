#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine that is reached over the network, by TLS: its certificate is looked at, ours is shown, what it has is listed,
# and commands go over the same connection.
. "$(dirname "$0")/lib.sh"
require_root
require curl openssl python3

PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
certify() { # NAME EXTENSION: by our own authority
	openssl req -newkey rsa:2048 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" -subj "/CN=$1" 2>/dev/null
	openssl x509 -req -in "$WORK/$1.csr" -CA "$WORK/ca.pem" -CAkey "$WORK/ca.key" -CAcreateserial -days 2 \
		-extfile <(printf '%s\n' "$2") -out "$WORK/$1.pem" 2>/dev/null
}
for name in ca other; do
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/$name.key" -out "$WORK/$name.pem" -days 2 \
		-subj "/CN=$name" 2>/dev/null
done
certify server 'subjectAltName = IP:127.0.0.1'
certify client 'extendedKeyUsage = clientAuth'
mkdir "$WORK/engine"
echo "--tlsverify --tlscacert $WORK/ca.pem --tlscert $WORK/server.pem --tlskey $WORK/server.key -H tcp://127.0.0.1:$PORT" \
	>"$WORK/engine/flags"
start_engine docker

configure() { # LINE...
	printf '[backend docker]\nurl = tcp://127.0.0.1:%s\ntemplate = cubefs-test\n' "$PORT" >"$CONF"
	printf '%s\n' "$@" >>"$CONF"
}
told() { # what doctor says
	cubefs doctor --config "$CONF" 2>&1 || true
}

configure "ca_file = $WORK/ca.pem"
check_not grep -q "Docker .* at tcp" < <(told) # it wants to know who we are
configure "ca_file = $WORK/other.pem" "cert_file = $WORK/client.pem" "key_file = $WORK/client.key"
check_match "$(told)" 'certificate'
configure
check_not grep -q "Docker .* at tcp" < <(told) # without TLS
configure "ca_file = $WORK/ca.pem" "cert_file = $WORK/client.pem" "key_file = $WORK/client.key"
check_match "$(told)" "Docker [0-9.]+.* at tcp://127.0.0.1:$PORT"

curl -sSf --unix-socket "$D/sock" -H 'Content-Type: application/json' -d '{"Image": "cubefs-test", "Cmd": ["sleep", "100"],
	"HostConfig": {"NetworkMode": "none"}}' 'http://engine/v1.41/containers/create?name=other' >"$WORK/out"
start_cubefs --config "$CONF"
wait_for 20 eval '[ "$(field "$MNT/backends/docker/status" reachable)" = yes ]'
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$MNT/backends/docker/sandboxes")" '^[0-9a-f]{64} stopped -'
check_match "$(field "$MNT/backends/docker/templates/cubefs-test/status" state)" ready
sandbox dev
check_match "$(field "$MNT/dev/status" agent)" "attached stream: .*tcp://127.0.0.1:$PORT"
put "$MNT/dev/exec" 'head -c 5000000 /dev/zero | tr "\0" x'
check_eq "$(sha256sum <"$MNT/dev/exec")" "$(head -c 5000000 /dev/zero | tr '\0' x | sha256sum)"
mkdir "$MNT/dev/jobs/in"
put "$MNT/dev/jobs/in/ctl" 'stdin pipe'
put "$MNT/dev/jobs/in/cmd" 'sha256sum'
head -c 2000000 /dev/zero >"$MNT/dev/jobs/in/stdin"
check_eq "$(cat <>"$MNT/dev/jobs/in/exit")" 0
check_eq "$(cat "$MNT/dev/jobs/in/stdout")" "$(head -c 2000000 /dev/zero | sha256sum)"
rmdir "$MNT/dev"
wait_for 20 eval '[ "$(boxes)" = 1 ]'
mkdir "$MNT/volumes/v"
wait_for 20 grep -q cubefs- < <(api GET /volumes)
rmdir "$MNT/volumes/v"
stop_cubefs
