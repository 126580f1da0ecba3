#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A restore of another sandbox's checkpoint, over another template, that is cut before or after its files took the place
# of those that were there: the files lie over the template that they were made over.
. "$(dirname "$0")/lib.sh"
require busybox
printf '[backend local]\nkind = local\nstore = copies\n' >"$WORK/conf"
start_cubefs --config "$WORK/conf"
mkdir -p "$WORK/root/bin" "$WORK/root/etc" "$WORK/root/www"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat echo; do ln -s busybox "$WORK/root/bin/$name"; done
echo 'root:x:0:0::/root:/bin/sh' >"$WORK/root/etc/passwd"
echo page >"$WORK/root/www/index"
mkdir "$MNT/backends/local/templates/t"
put "$MNT/backends/local/templates/t/ctl" "import $WORK/root"
sandbox a template=t
run a 'echo a >/etc/mine'
mkdir "$MNT/a/checkpoints/c"
sandbox dev
run dev 'echo dev >/etc/mine'
id=$(field "$MNT/dev/status" id)
RECORD=$STATE/backends/local/cubes/$id/local.json
SET=$STATE/backends/local/layers/$id
CP=$(basename "$STATE"/backends/local/checkpoints/*.json .json)
T=$(grep -oP '"template":"\K[^"]*' "$STATE/backends/local/cubes/$(field "$MNT/a/status" id)/local.json")
says() { grep -oP "\"$1\":\"\\K[^\"]*" "$RECORD" || true; }
cut_then() { # COMMAND WORD...: between two daemons; what the record says of before the restore, and that it has begun
	put "$MNT/dev/ctl" stop
	stop_cubefs
	sed -i -E -e 's/"template":"[^"]*"/"template":"host"/' -e 's/"base":"[^"]*"/"base":""/' \
		-e "s/\"next_template\":\"\"/\"next_template\":\"$T\"/" -e "s/\"next_base\":\"\"/\"next_base\":\"$CP\"/" "$RECORD"
	check_eq "$(says template) $(says next_template) $(says next_base)" "host $T $CP"
	"$@"
	start_cubefs --config "$WORK/conf"
	put "$MNT/dev/ctl" start
	check_eq "$(says next_template)$(says next_base)" ''
	check_not test -e "$SET/restored"
}

# before: what was there is there
cut_then true
check_eq "$(says template)" host
check_eq "$(run dev 'cat /etc/mine')" dev

# after: the checkpoint's files, over its template
put "$MNT/dev/ctl" 'restore a/c'
check_eq "$(says template) $(says base)$(says next_template)$(says next_base)" "$T $CP"
check_not test -e "$SET/restored"
cut_then touch "$SET/restored"
check_eq "$(says template) $(says base)" "$T $CP"
check_eq "$(run dev 'cat /etc/mine /www/index')" $'a\npage'
rmdir "$MNT/dev" "$MNT/a"
stop_cubefs
