#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Another project's clients of 9P2000.L: what diod's tools see is what the mount shows.
. "$(dirname "$0")/lib.sh"
require diodls diodcat diodload python3
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_cubefs --9p "tcp:127.0.0.1:$PORT"
sandbox dev
tools() { # PROGRAM ANAME ARGUMENT...
	local program=$1 aname=$2
	shift 2
	timeout 60 "$program" -s "127.0.0.1:$PORT" -a "$aname" "$@"
}

# diodls lists the anames that are its arguments.
check_eq "$(tools diodls / | sort)" "$(LC_ALL=C ls "$MNT" | sort)" 'the root'
check_eq "$(tools diodls /dev | sort)" "$(ls "$MNT/dev" | sort)" 'a sandbox'
# it shows a link as if it were a file, and the directory itself
check_eq "$(tools diodls /dev -l 2>/dev/null | awk '$NF !~ /^\.|^workspace$/ { print substr($1, 1, 10), $NF }' | sort)" \
	"$(stat -c '%A %n' "$MNT"/dev/* | sed 's|/.*/||; /workspace$/d' | sort)" 'modes'
check_eq "$(tools diodcat / README)" "$(cat "$MNT/README")" 'README'
run dev 'seq 200000 >/workspace/numbers'
check_eq "$(tools diodcat /dev files/workspace/numbers | sha256sum)" "$(seq 200000 | sha256sum)" 'a real file'
run dev 'echo said; exit 4' >/dev/null || true
check_eq "$(tools diodcat /dev exec exit)" $'said\n4'
check_match "$(tools diodcat / nothing 2>&1 || true)" 'No such file'
check_match "$(tools diodls /nothing 2>&1 || true)" 'No such file'
