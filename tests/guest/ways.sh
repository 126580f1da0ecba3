#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest (v9fs.sh), as the shell tests do: the ways of cubefs-9p(7) by which Linux mounts the tree, and the
# programs around a mount on one of 9P. The server is at tree.host of the kernel's command line, its ports at tree.port
# and, with TLS, tree.tls; /etc/9p has what a client needs for that.
. "$(dirname "$0")/lib.sh"
OTHER=/mnt/other

word() { # KEY: of the kernel's command line
	tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"
}

serves() { # at $OTHER, what $MNT shows
	check_eq "$(ls "$OTHER")" "$(ls "$MNT")"
	check_eq "$(cat "$OTHER/one/files/workspace/f")" first
	put "$OTHER/one/exec" 'echo over there'
	check_eq "$(cat "$MNT/one/exec")" 'over there'
	umount "$OTHER"
}

listens() { # PORT
	(exec 6<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

HOST=$(word tree.host) PORT=$(word tree.port) TLS=$(word tree.tls)
start_cubefs
sandbox one
sandbox two
run one 'echo first >/workspace/f'
mkdir -p "$OTHER"

# a socket that the one who mounts has connected
exec 5<>"/dev/tcp/$HOST/$PORT"
mount -t 9p -o trans=fd,rfdno=5,wfdno=5,version=9p2000.L,msize=131072 none "$OTHER"
exec 5>&-
serves

# a unix socket
socat "UNIX-LISTEN:$WORK/cubes.sock" "TCP:$HOST:$PORT" &
wait_for 30 test -S "$WORK/cubes.sock"
mount -t 9p -o trans=unix,version=9p2000.L,msize=131072 "$WORK/cubes.sock" "$OTHER"
serves

# TLS, which socat has; it hangs up with its client
socat TCP-LISTEN:5640,bind=127.0.0.1,reuseaddr,fork \
	"OPENSSL:$HOST:$TLS,cafile=/etc/9p/ca.pem,cert=/etc/9p/me.pem,key=/etc/9p/me.key" &
SOCAT=$!
on_exit kill "$SOCAT"
wait_for 30 listens 5640
mount -t 9p -o trans=tcp,port=5640,version=9p2000.L,msize=131072 127.0.0.1 "$OTHER"
serves

# one sandbox and no more
mount -t 9p -o "trans=tcp,port=$PORT,version=9p2000.L,aname=/one" "$HOST" "$OTHER"
check_eq "$(cat "$OTHER/files/workspace/f")" first
check_not test -e "$OTHER/two"
put "$OTHER/exec" 'echo only one'
check_eq "$(cat "$OTHER/exec")" 'only one'
umount "$OTHER"

# the programs
check_eq "$(CUBEFS_MOUNT=$MNT cubefs sh one echo hello </dev/null | tr -d '\r')" hello
code=0
cubefs sh "$MNT/one" sh -c 'exit 3' </dev/null || code=$?
check_eq "$code" 3
check_match "$(cubefs top -b "$MNT")" 'one .*running'
check_match "$(cat "$MNT/README")" 'cubefs'
