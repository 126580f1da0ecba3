#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# -o allow_other: other users come in, as far as mode bits let them. Without it nobody does.
. "$(dirname "$0")/lib.sh"

if [ "$TEST_UID" -ne 0 ]; then
	grep -q '^user_allow_other' /etc/fuse.conf && skip 'everyone may use allow_other on this machine'
	out=$(cubefs --state "$STATE" -o allow_other "$MNT" 2>&1) && fail 'allow_other was not refused'
	check_match "$out" '^cubefs: -o allow_other: .*only root.*user_allow_other.*/etc/fuse.conf'
	check_eq "$(wc -l <<<"$out")" 1
	check_not is_mounted "$MNT"
	start_cubefs # nothing of the attempt is in the way
	sandbox dev
	exit 0
fi

require setpriv
chmod 755 "$WORK"
other() { # COMMAND...: as another user
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"
}
other test -x "$WORK" || skip "another user cannot reach $WORK"

# without it
start_cubefs
sandbox dev
expect_errno EACCES other ls "$MNT"
expect_errno EACCES other cat "$MNT/README"
stop_cubefs

# with it: what everyone may read can be read, what is the mounting user's alone can not
start_cubefs -o allow_other
D=$MNT/dev
check_eq "$(other head -n 1 "$MNT/README")" "$(head -n 1 "$MNT/README")"
check_eq "$(other ls "$MNT")" "$(ls "$MNT")"
check_eq "$(field <(other cat "$D/status") state)" running
for file in ctl dev/ctl dev/exec dev/env; do
	expect_errno EACCES other bash -c "echo x >'$MNT/$file'"
	expect_errno EACCES other bash -c "exec 3<>'$MNT/$file'"
done
expect_errno EACCES other mkdir "$MNT/mine"
expect_errno EACCES other mkdir "$D/jobs/mine"
expect_errno EACCES other rmdir "$D"
expect_errno EACCES other mv "$D" "$MNT/mine"
check_eq "$(ls -d "$D")" "$D"

# in files/ it is the sandbox's own modes
run dev 'echo open >open; echo closed >closed; chmod 600 closed; mkdir shared own; chmod 1777 shared; echo x >own/x; chmod 700 own'
W=$D/files/workspace
check_eq "$(other cat "$W/open")" open
expect_errno EACCES other cat "$W/closed"
expect_errno EACCES other bash -c "echo more >>'$W/open'"
expect_errno EACCES other ls "$W/own"
expect_errno EACCES other touch "$W/new"
expect_errno EACCES other rm "$W/open"
other bash -c "echo theirs >'$W/shared/file'"
check_eq "$(stat -c '%u:%g' "$W/shared/file")" 65534:65534
check_eq "$(run dev 'cat shared/file; stat -c %u shared/file')" $'theirs\n65534'
expect_errno EPERM other chown 0 "$W/shared/file"
other chmod 640 "$W/shared/file"
check_eq "$(stat -c %a "$W/shared/file")" 640
run dev 'echo root >shared/root'
expect_errno EPERM other rm -f "$W/shared/root"
other rm "$W/shared/file"
check_eq "$(cat "$W/closed")" closed

# A path of this machine is opened with the rights of whoever writes, whoever opened the `ctl`: all that is below it, too.
mkdir -p "$WORK/mixed/open" "$WORK/mixed/through" "$WORK/mixed/bin"
cp "$(readlink -f /bin/sh)" "$WORK/mixed/bin/sh"
echo public >"$WORK/mixed/open/file"
T=$MNT/backends/local/templates
import_as_other() { # TEMPLATE SOURCE
	other bash -c "echo 'import $2' >&3" 3>"$T/$1/ctl"
}
mkdir "$T/all"
import_as_other all "$WORK/mixed"
check_eq "$(field "$T/all/status" state)" ready
chmod 600 "$WORK/mixed/open/file"
mkdir "$T/file" "$T/list" "$T/through" "$T/top" "$T/image"
expect_error EACCES "$MNT/error" 'file: Permission denied' import_as_other file "$WORK/mixed"
check_eq "$(field "$T/file/status" state)" error
rm "$WORK/mixed/open/file"
chmod 711 "$WORK/mixed/open" # its names are nobody's business
expect_error EACCES "$MNT/error" 'open: Permission denied' import_as_other list "$WORK/mixed"
chmod 755 "$WORK/mixed/open"
chmod 744 "$WORK/mixed/through" # its names may be read, what they are may not
expect_error EACCES "$MNT/error" 'through: Permission denied' import_as_other through "$WORK/mixed"
chmod 744 "$WORK/mixed"
expect_error EACCES "$MNT/error" 'mixed: Permission denied' import_as_other top "$WORK/mixed"
chmod 755 "$WORK/mixed" "$WORK/mixed/through"
rm -r "${WORK:?}/mixed/bin"
mkdir "$WORK/picture"
echo '{"imageLayoutVersion":"1.0.0"}' >"$WORK/picture/oci-layout"
(umask 077; echo '{"schemaVersion":2,"manifests":[]}' >"$WORK/picture/index.json")
expect_error EACCES "$MNT/error" 'index.json: Permission denied' import_as_other image "$WORK/picture"
chmod 644 "$WORK/picture/index.json"
expect_error EOPNOTSUPP "$MNT/error" 'nothing for linux' import_as_other image "$WORK/picture"
put "$T/file/ctl" "import $WORK/mixed" # root may
check_eq "$(field "$T/file/status" state)" ready
rmdir "$T/all" "$T/file" "$T/list" "$T/through" "$T/top" "$T/image"
