#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion for bash, by bash's own machinery: what is completed is what there is.
. "$(dirname "$0")/lib.sh"
FILE=$(dirname "$0")/../../ctl/cli/completion/cubefs.bash
[ -r "$FILE" ] || skip "$FILE is not here"
start_cubefs
put "$MNT/ctl" 'create alpha'
put "$MNT/ctl" 'create alone'
put "$MNT/ctl" 'create beta'
mkdir -p "$WORK/in/dirs/inner" "$WORK/in/with blank"
: >"$WORK/in/conf"

# What bash would offer for the words, the last of them unfinished.
offers() { # WORD...
	(
		cd "$WORK/in"
		# shellcheck source=/dev/null
		. "$FILE"
		[ "$(complete -p cubefs)" = 'complete -F _cubefs cubefs' ] || fail 'cubefs is not completed'
		# shellcheck disable=SC2034 # what bash sets
		COMP_WORDS=(cubefs "$@")
		COMP_CWORD=$#
		_cubefs cubefs "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>&1
		[ "${#COMPREPLY[@]}" -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}" | sort
	)
}

# every command and option of the usage is offered, and nothing else
cubefs --help >"$WORK/help"
commands=$(awk '$1 == "cubefs" && $2 ~ /^[a-z]+$/ { print $2 }' "$WORK/help" | sort -u)
check_eq "$(offers '' | grep -vx 'dirs\|with blank')" "$commands" 'commands'
options=$(grep -oE '^  (-[a-zA-Z])?,? ?(--[a-z0-9-]+)?' "$WORK/help" | grep -oE -- '--?[a-zA-Z0-9][a-zA-Z0-9-]*' | sort -u)
check_eq "$(offers -)" "$options" 'options'
mounted=$(awk '$1 == "-o" { print $2 }' "$WORK/help" | sort)
check_eq "$(offers -o '')" "$mounted" 'mount options'

check_eq "$(offers um)" umount
check_eq "$(offers up)" upgrade
check_eq "$(offers di)" dirs
check_eq "$(offers dirs/)" dirs/inner
check_eq "$(offers -f di)" dirs
check_eq "$(offers --config c)" conf
check_eq "$(offers --state d)" dirs
check_eq "$(offers --9p-token-file c)" conf
check_eq "$(offers --9p un)" unix:
check_eq "$(offers zzz)" ''

# mount points and sandboxes
check_match "$(offers umount '')" "$MNT"
check_eq "$(offers umount "${MNT%nt}")" "$MNT"
check_eq "$(offers umount "$MNT" '')" ''
check_eq "$(offers upgrade "${MNT%nt}")" "$MNT"
check_eq "$(offers top "${MNT%nt}")" "$MNT"
check_eq "$(offers top -)" $'-b\n-d'
check_eq "$(CUBEFS_MOUNT=$MNT offers sh '')" $'alone\nalpha\nbeta'
check_eq "$(CUBEFS_MOUNT=$MNT offers sh al)" $'alone\nalpha'
check_eq "$(CUBEFS_MOUNT=$MNT offers sh alpha '')" ''
check_eq "$(offers sh "$MNT/be")" "$MNT/beta"
check_eq "$(CUBEFS_MOUNT=$WORK/none offers sh '')" ''
check_eq "$(offers doctor --config c)" conf
check_eq "$(offers doctor -)" $'--9p\n--9p-token-file\n--config\n--state'

# a mount point with a blank in its name
mkdir "$WORK/a mount"
STATE=$WORK/state2 MNT="$WORK/a mount" LOG=$WORK/log2
mkdir -p "$STATE"
cubefs -f --state "$STATE" "$MNT" >>"$LOG" 2>&1 </dev/null &
pid=$!
on_exit cubefs umount "$MNT"
wait_for 60 test -e "$MNT/README"
check_eq "$(offers umount "$WORK/a")" "$(printf '%q' "$MNT")"
cubefs umount "$MNT"
EXITS=()
wait "$pid"
