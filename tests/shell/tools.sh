#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Readers and writers of every kind: shells, tools, languages.
. "$(dirname "$0")/lib.sh"
require python3 busybox perl
start_cubefs
sandbox dev
D=$MNT/dev
E=$D/exec

is() { check_eq "$(cat "$E")" "$1" "${2-output}"; }

# writers
for shell in bash dash 'busybox sh'; do
	$shell -c "echo 'echo from $shell' > '$E'"; is "from $shell"
	$shell -c "printf 'echo a\necho b\n' > '$E'"; is $'a\nb'
	$shell -c "{ echo 'echo 1'; /bin/true; echo 'echo 2'; } > '$E'"; is $'1\n2'
	$shell -c "cat > '$E' <<X
echo here
X"; is here
	$shell -c "exec 3>'$E'; echo 'echo fd' >&3; exec 3>&-"; is fd
done
echo 'echo tee' | tee "$E" >/dev/null; is tee
echo 'echo dd' | dd of="$E" bs=3 2>/dev/null; is dd
echo 'echo cp' >"$WORK/x"; cp "$WORK/x" "$E"; is cp
busybox cp "$WORK/x" "$E"; is cp
echo 'echo append' >>"$E"; is append
set -o noclobber; echo 'echo noclobber' >|"$E"; is noclobber; set +o noclobber
python3 -c "open('$E', 'w').write('echo py\n')"; is py
python3 -c "
with open('$E', 'w') as f: f.write('echo with\n')"; is with
python3 -c "import pathlib; pathlib.Path('$E').write_text('echo path\n')"; is path
perl -e "open(F, '>', '$E'); print F qq(echo perl\n); close F"; is perl
awk "BEGIN { print \"echo awk\" > \"$E\"; close(\"$E\") }"; is awk
if command -v node >/dev/null; then node -e "require('fs').writeFileSync('$E', 'echo node\n')"; is node; fi
if command -v ksh >/dev/null; then ksh -c "echo 'echo ksh' > '$E'"; is ksh; fi
touch "$E"; is "$(cat "$E")"
truncate -s 0 "$D/ctl"

# readers of a text of which the size is known, of a growing one, and of one that ended
seq 1 30000 >"$WORK/want"
put "$E" 'seq 1 30000'
reads() { # COMMAND...: gives all of exec
	"$@" "$E" >"$WORK/got" 2>/dev/null
	check cmp "$WORK/want" "$WORK/got"
}
reads cat; reads busybox cat; reads head -n 99999; reads tail -n 99999; reads sed ''; reads grep ''; reads sort -n
reads python3 -c 'import sys; sys.stdout.write(open(sys.argv[1]).read())'
reads python3 -c 'import shutil, sys; shutil.copyfile(sys.argv[1], "'"$WORK"'/cp"); sys.stdout.write(open("'"$WORK"'/cp").read())'
reads perl -ne print
dd if="$E" bs=777 2>/dev/null | check cmp - "$WORK/want"
cp "$E" "$WORK/got"; check cmp "$WORK/want" "$WORK/got"
check_eq "$(wc -c <"$E")" "$(stat -c %s "$WORK/want")"
check_eq "$(wc -l <"$E")" 30000
check test -s "$E"
mapfile -t lines <"$E"; check_eq "${#lines[@]}" 30000
check_eq "$(tail -c 6 "$E")" 30000
rsync -a --no-o --no-g "$D/jobs/last/" "$WORK/rs/" 2>/dev/null || true
tar -C "$D/jobs" -chf - last/output | tar -xOf - | check cmp - "$WORK/want"

# extended attributes: ours have none and know of none, so that nobody asks twice; real files keep theirs
python3 - "$MNT" "$MNT/README" "$D" "$D/jobs" "$E" <<'X'
import errno, os, sys
for path in sys.argv[1:]:
    assert os.listxattr(path) == [], path
    for call in (lambda: os.getxattr(path, 'security.selinux'), lambda: os.setxattr(path, 'user.x', b'x'),
                 lambda: os.removexattr(path, 'user.x')):
        try:
            call()
            sys.exit(path + ': it has one')
        except OSError as e:
            assert e.errno == errno.EOPNOTSUPP, (path, e)
X
check_eq "$(tar --xattrs -C "$D" -cf /dev/null ctl status 2>&1)" ''

# recursive readers terminate, change nothing and wake nobody
before=$(ls "$D/jobs")
mkdir "$D/jobs/live"; put "$D/jobs/live/cmd" 'while :; do echo x; sleep 0.1; done'
mkdir "$WORK/copy"
check timeout 60 cp -r "$D/jobs" "$D/sessions" "$D/status" "$D/logs" "$WORK/copy/"
check timeout 60 tar -C "$D" -cf "$WORK/t.tar" jobs sessions ctl status info.json env error logs exec exit
timeout 60 grep -r nothing-of-that-name "$D/jobs" "$D/sessions" "$MNT/backends" || true
timeout 60 diff -r "$D/sessions" "$D/sessions"
timeout 60 find "$MNT" -path '*/files/*' -prune -o -type f -print0 | xargs -0 -n 50 timeout 60 cat >/dev/null
check_eq "$(ls "$D/jobs")" "$(printf '%s\n' "$before" live | sort)" 'jobs after looking'
check_eq "$(ls "$MNT" | grep -c sandbox || true)" 0 'sandboxes after looking'
put "$D/jobs/live/ctl" kill
{ timeout 2 tail -n +1 -f "$D/logs" || true; } | grep -q " life "
