#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine that is reached over the network, by TLS: its certificate is looked at, ours is shown, and what it has is
# listed. Commands are not to be had there, and the reason is said.
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
check_match "$(cat "$MNT/backends/docker/status")" 'exec.*may be another machine'
mkdir "$MNT/volumes/v"
wait_for 20 grep -q cubefs- < <(api GET /volumes)
rmdir "$MNT/volumes/v"
stop_cubefs
