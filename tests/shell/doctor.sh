#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cubefs doctor: what it finds is true, and each fault comes with its fix.
. "$(dirname "$0")/lib.sh"
require openssl

out=$(cubefs doctor --state "$STATE") || true
check_match "$out" 'ok +/dev/fuse can be opened'
check_match "$out" 'ok +local: .*crun'
check_match "$out" 'ok +local: can do: exec'
while read -r line; do
	[[ $line != FAIL* ]] || read -r _ || fail "no fix for: $line"
done <<<"$out"

# 9P: nothing is said where nothing is asked for; what is wrong with settings and addresses, and what to do
check_not grep -q '9P' <<<"$out"
says() { # REGEX... -- OPTION...: its lines
	local regexes=() regex
	while [ "$1" != -- ]; do
		regexes+=("$1")
		shift
	done
	shift
	out=$(cubefs doctor --state "$STATE" "$@") || true
	for regex in "${regexes[@]}"; do
		check_match "$out" "$regex" "doctor $*"
	done
}
pem() { # NAME DAYS [OPTION...]
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.pem" -days "$2" -subj "/CN=$1" \
		"${@:3}" 2>/dev/null
	chmod 600 "$WORK/$1.key"
}
conf() { # LINE...
	printf '%s\n' '[9p]' "$@" >"$WORK/conf"
}
pem good 300
pem short 3
pem other 300
(umask 077 && echo a-word-that-is-long-enough >"$WORK/token")

conf "certificate = $WORK/good.pem" "key = $WORK/good.key" "ca = $WORK/other.pem" "token_file = $WORK/token"
says 'ok +9P: the token in' 'ok +9P: ca .*valid until' 'ok +9P: certificate /.*valid until' 'ok +9P: .*belong together' \
	"ok +9P: unix:$WORK/sock can be served" 'ok +9P: tcp:127.0.0.1:0 can' 'ok +9P: tls:127.0.0.1:0 can' \
	-- --config "$WORK/conf" --9p "unix:$WORK/sock" --9p tcp:127.0.0.1:0 --9p tls:127.0.0.1:0
check_not test -e "$WORK/sock"
check_not grep -q 'FAIL.*9[Pp]' <<<"$out"
conf "certificate = $WORK/short.pem" "key = $WORK/other.key"
says 'FAIL +9P: certificate .*valid until.*-> renew it' 'FAIL +\[9p\] key = .*mismatch' -- --config "$WORK/conf"
conf "key = $WORK/good.key"
says "FAIL .*wants 'certificate' and 'key'" -- --config "$WORK/conf"
conf "ca = $WORK/token"
says 'FAIL +\[9p\] ca = .*PEM form' -- --config "$WORK/conf"
conf 'msize = 12'
says 'FAIL +\[9p\] msize.*cubefs.conf' -- --config "$WORK/conf"
conf "certificate = $WORK/good.pem" "key = $WORK/good.key"
chmod 644 "$WORK/good.key" "$WORK/token"
says 'FAIL +9P: key .*mode 644.*chmod 600' 'FAIL +9P: token .*mode 644.*chmod 600' \
	-- --config "$WORK/conf" --9p-token-file "$WORK/token"
echo short >"$WORK/token"
says 'FAIL .*wants a word of 16.*openssl rand' 'FAIL .*absolute' "FAIL .*$WORK/none/sock: .*make the directory" \
	-- --9p-token-file "$WORK/token" --9p unix:here --9p "unix:$WORK/none/sock"
says 'FAIL .*tcp:0.0.0.0:0: .*every sandbox' -- --9p tcp:0.0.0.0:0
check_match "$(cubefs doctor --9p 2>&1 || true)" usage

# files/: likewise
check_not grep -q '\[files\]' <<<"$out"
for keep in maybe '' 2; do
	printf '%s\n' '[files]' "keep = $keep" >"$WORK/conf"
	says 'FAIL +.*\[files\] keep=.*yes or no.*cubefs.conf' -- --config "$WORK/conf"
done
printf '%s\n' '[files]' 'kept = yes' >"$WORK/conf"
says 'FAIL +.*kept.*cubefs.conf' -- --config "$WORK/conf"
printf '%s\n' '[files]' 'keep = yes' >"$WORK/conf"
IFS=. read -r major minor _ < <(uname -r)
if [ "$major" -gt 6 ] || { [ "$major" -eq 6 ] && [ "${minor%%[!0-9]*}" -ge 16 ]; }; then
	says 'ok +\[files\] keep=yes: the kernel can be told' -- --config "$WORK/conf"
else
	says 'FAIL +\[files\] keep=yes: .*Linux 6.16' -- --config "$WORK/conf"
fi
echo '[files' >"$WORK/conf"
says 'FAIL .*-> correct' -- --config "$WORK/conf"

# without crun it says so, and so does a create
mkdir "$WORK/bin"
for tool in /usr/bin/* /bin/*; do
	[ "${tool##*/}" = crun ] || ln -sf "$tool" "$WORK/bin/" 2>/dev/null
done
real=$(command -v cubefs)
out=$(PATH=$WORK/bin "$real" doctor --state "$STATE") && fail 'doctor is content without crun'
check_match "$out" 'FAIL +local: sandboxes can run'
check_match "$out" 'apt-get install crun'
PATH=$WORK/bin:$(dirname "$real") start_cubefs
expect_error EOPNOTSUPP "$MNT/error" crun bash -c "echo 'create x' >'$MNT/ctl'" ||
	fail 'create without crun'
check_not test -e "$MNT/x"
