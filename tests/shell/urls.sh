#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Templates from URLs: checksums, redirections, what a server refuses; a download that is cut off goes on.
. "$(dirname "$0")/lib.sh"
require busybox tar python3
start_cubefs
T=$MNT/backends/local/templates
gone() { rmdir "$1" 2>/dev/null; }
mkdir -p "$WORK/web" "$WORK/root/bin" "$WORK/root/etc"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat; do ln -s busybox "$WORK/root/bin/$name"; done
head -c 3000000 /dev/urandom >"$WORK/root/etc/noise"
echo web >"$WORK/root/etc/name"
tar -C "$WORK/root" -cf "$WORK/web/t.tar" .
gzip -k "$WORK/web/t.tar"
sum() { sha256sum <"$WORK/web/$1" | cut -d ' ' -f 1; }

python3 "$(dirname "$0")/server.py" "$WORK/web" "$WORK/port" "$WORK/requests" &
server=$!
on_exit kill "$server"
wait_for 20 test -s "$WORK/port"
URL=http://127.0.0.1:$(cat "$WORK/port")
: >"$WORK/requests"

mkdir "$T/web"
put "$T/web/ctl" "import $URL/file/t.tar.gz sha256=$(sum t.tar.gz)"
check_match "$(cat "$T/web/info")" "fingerprint sha256:$(sum t.tar.gz)"
check_match "$(cat "$T/web/info")" "source $URL/file/t.tar.gz"
sandbox dev template=web
check_eq "$(run dev 'cat /etc/name')" web
rmdir "$MNT/dev"
# the same again: not even asked for
check_eq "$(grep -c . "$WORK/requests")" 1
put "$T/web/ctl" "import $URL/file/t.tar.gz sha256=$(sum t.tar.gz)"
check_eq "$(grep -c . "$WORK/requests")" 1
# another content under the same name
put "$T/web/ctl" "import $URL/moved/t.tar sha256=$(sum t.tar)"
check_match "$(cat "$T/web/info")" "fingerprint sha256:$(sum t.tar)"
wait_for 10 gone "$T/web"

# refused
mkdir "$T/bad"
none=$(printf '0%.0s' {1..64})
refused() { # ERRNO REGEX SOURCE [KEY]
	expect_error "$1" "$MNT/error" "$2" bash -c "echo 'import $3 ${4-sha256=$none}' >'$T/bad/ctl'"
}
refused EINVAL 'checksum' "$URL/file/t.tar" ''
refused EINVAL "has the checksum sha256:$(sum t.tar)" "$URL/file/t.tar"
refused ENOENT '404' "$URL/file/no"
refused EACCES '403' "$URL/secret/t.tar"
refused EREMOTEIO '500' "$URL/broken/t.tar"
refused EREMOTEIO 'redirect' "$URL/loop/t.tar"
refused EINVAL 'rotocol' "$URL/away"
refused EHOSTUNREACH 'onnect' http://127.0.0.1:1/t.tar
refused EINVAL 'password' "http://me:word@127.0.0.1/t.tar"
refused EINVAL 'URL' "http:///t.tar"
refused EOPNOTSUPP 'not file' "file:///etc/passwd"
refused EOPNOTSUPP 'not ftp' "ftp://127.0.0.1/t.tar"
check_eq "$(field "$T/bad/status" state)" error
rmdir "$T/bad"

# cancelled in the middle: the next goes on where it was
mkdir "$T/half"
: >"$WORK/requests"
(echo "import $URL/half/t.tar sha256=$(sum t.tar)" >"$T/half/ctl") 2>/dev/null &
writer=$!
wait_for 20 test -s "$WORK/requests"
check_match "$(cat "$T/half/status")" 'state importing [0-9]+'
expect_errno EBUSY bash -c "echo 'import $WORK/root' >'$T/half/ctl'"
expect_errno EBUSY rmdir "$T/half"
downloads() { find "$STATE/backends/local/templates" -maxdepth 2 -name 'download.*' -size "$1" 2>/dev/null | wc -l; }
kept() { [ "$(downloads +1000k)" = 1 ]; }
none_kept() { [ "$(downloads +0)" = 0 ]; }
wait_for 20 kept
put "$T/half/ctl" cancel
check_not wait "$writer"
check_match "$(cat "$T/half/status")" 'reason .*goes on'
check kept

# killed in the middle: the next daemon keeps what came, and nothing else
(echo "import $URL/half/t.tar sha256=$(sum t.tar)" >"$T/half/ctl") 2>/dev/null &
writer=$!
asked() { grep -q 'bytes=[1-9][0-9]*-' "$WORK/requests"; }
wait_for 20 asked
kill_cubefs
wait "$writer" || true
start_cubefs
says_interrupted() { grep -q '^reason .*interrupted' "$T/half/status"; }
wait_for 20 says_interrupted
check_eq "$(field "$T/half/status" state)" error
check kept
touch "$WORK/web/go"
: >"$WORK/requests"
put "$T/half/ctl" "import $URL/half/t.tar sha256=$(sum t.tar)"
check asked
sandbox dev template=half
check_eq "$(run dev 'cat /etc/name')" web
rmdir "$MNT/dev"
wait_for 10 gone "$T/half"
check none_kept

# a server that knows no parts: all of it again
rm "$WORK/web/go"
mkdir "$T/plain"
: >"$WORK/requests"
(echo "import $URL/half/t.tar sha256=$(sum t.tar)" >"$T/plain/ctl") 2>/dev/null &
writer=$!
wait_for 20 kept
put "$T/plain/ctl" cancel
check_not wait "$writer"
put "$T/plain/ctl" "import $URL/plain/t.tar sha256=$(sum t.tar)"
check_eq "$(tail -n 2 "$WORK/requests" | cut -d = -f 1 | tr '\n' ' ')" '/plain/t.tar bytes /plain/t.tar - '
check_match "$(cat "$T/plain/info")" "fingerprint sha256:$(sum t.tar)"
wait_for 10 gone "$T/plain"

# rmdir takes what was downloaded along
mkdir "$T/left"
(echo "import $URL/half/t.tar sha256=$(sum t.tar)" >"$T/left/ctl") 2>/dev/null &
writer=$!
wait_for 20 kept
put "$T/left/ctl" cancel
check_not wait "$writer"
rmdir "$T/left"
wait_for 10 none_kept
