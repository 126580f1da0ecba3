#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cubefs-files(5) has every verb that a ctl shows, every key of create, and every key of the status files; cubefs(1)
# every option.
. "$(dirname "$0")/lib.sh"
DOCS=$(dirname "$0")/../../docs
PAGE=$DOCS/cubefs-files.5

section() { # TITLE
	awk -v title="$1" '/^\.S[sh] / { on = $0 == ".Ss " title } on' "$PAGE"
}

# Every word of stdin has an entry (.It) in a section.
documented() { # TITLE
	local word text count=0
	text=$(section "$1")
	while read -r word; do
		count=$((count + 1))
		grep -qE "^\.It (Cm|Pa) ([^ ]+ , )*${word//./\\.}( |$)" <<<"$text" || fail "'$1' in the manual has no $word"
	done
	[ "$count" -gt 0 ] || fail "nothing to look for in '$1'"
}

verbs() { # FILE: the words in front of the usage lines, which follow the first empty line
	awk 'usage { print $1 } /^$/ { usage = 1 }' "$1"
}

keys() { # FILE
	awk '{ sub(/^label\..*/, "label"); print $1 }' "$1" | sort -u
}

start_cubefs
D=$MNT/dev
put "$MNT/ctl" 'create dev label.owner=me'
mkdir "$D/jobs/one" "$D/sessions/two" "$MNT/backends/local/templates/new" "$MNT/backends/local/pools/new"

documented 'Verbs of the root' < <(verbs "$MNT/ctl")
documented 'Verbs of a backend' < <(verbs "$MNT/backends/local/ctl")
documented 'Verbs of a template' < <(verbs "$MNT/backends/local/templates/new/ctl")
documented 'Verbs of a pool' < <(verbs "$MNT/backends/local/pools/new/ctl")
documented 'Verbs of a sandbox' < <(verbs "$D/ctl")
documented 'Verbs of a session' < <(verbs "$D/sessions/two/ctl")
documented 'Verbs of a job' < <(verbs "$D/jobs/one/ctl")
mkdir "$D/ports/80"
documented 'Verbs of a port' < <(verbs "$D/ports/80/ctl")
mkdir "$D/checkpoints/one"
documented 'Verbs of a checkpoint' < <(verbs "$D/checkpoints/one/ctl")
put "$D/ctl" pause
documented 'Verbs of a sandbox' < <(verbs "$D/ctl")
put "$D/ctl" stop
documented 'Verbs of a sandbox' < <(verbs "$D/ctl")
documented 'Status' < <(keys "$D/status" | sed 's/^label$/label. Ns Ar NAME/')

expect_error EINVAL "$MNT/error" "no key 'nonsense'; known: " put "$MNT/ctl" 'create x nonsense=1'
documented 'Keys of create' < <(tail -n 1 "$MNT/error" | sed 's/.*known: //; s/, /\n/g' | sed -E 's/\.(NAME|PATH)$/. Ns Ar \1/')

# Options: -f, --foreground, -o allow_other, ... of the usage text.
options=$(cubefs --help | sed -nE 's/^  ((-[-a-zA-Z]+(, --[a-z]+)?|-o [a-z_]+).*)/\1/p' | grep -oE '^-o [a-z_]+|(^| )-[a-zA-Z],|--[a-z]+')
check_match "$options" allow_other
while read -r option; do
	option=${option%,}
	case $option in
	'-o '*) want="^\.It Cm ${option#-o }" ;;
	*) want="^\.It (Fl [^ ]+ , )?Fl ${option#-}( |$)" ;;
	esac
	grep -qE "$want" "$DOCS/cubefs.1" || grep -qE "^\.It Fl ${option#-} ," "$DOCS/cubefs.1" || fail "cubefs(1) has no $option"
done <<<"$options"
