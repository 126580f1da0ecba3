#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Archives that become more than they look: ended at the bounds of the configuration, without a trace.
. "$(dirname "$0")/lib.sh"
require tar gzip python3
printf '[backend local]\nkind = local\ntemplate_size = 4M\ntemplate_files = 100\n' >"$WORK/conf"
start_cubefs --config "$WORK/conf"
T=$MNT/backends/local/templates
mkdir "$WORK/a"
head -c 50000000 /dev/zero >"$WORK/a/zeros"
tar -C "$WORK/a" -czf "$WORK/zeros.tar.gz" zeros
python3 - "$WORK/names.tar.gz" <<'PY'
import sys, tarfile
with tarfile.open(sys.argv[1], 'w:gz') as t:
    for i in range(20000):
        t.addfile(tarfile.TarInfo('n%d' % i))
PY
head -c 1000000 /dev/zero >"$WORK/a/zeros"
tar -C "$WORK/a" -czf "$WORK/small.tar.gz" zeros

before=$(find "$STATE/backends/local/templates" | sort)
mkdir "$T/t"
expect_error EDQUOT "$MNT/error" 'template_size' put "$T/t/ctl" "import $WORK/zeros.tar.gz"
check_eq "$(field "$T/t/status" state)" error
expect_error EDQUOT "$MNT/error" '100 entries .template_files' put "$T/t/ctl" "import $WORK/names.tar.gz"
check_eq "$(find "$STATE/backends/local/templates" | sort)" "$before" 'what is left of a refused import'
put "$T/t/ctl" "import $WORK/small.tar.gz"
check_eq "$(field "$T/t/status" state)" ready
gone() { rmdir "$1" 2>/dev/null; }
wait_for 20 gone "$T/t"
stop_cubefs

# what is no bound is said before the mount
for bad in 'template_size = much' 'template_size = -1' 'template_files = many' 'template_files = -5'; do
	printf '[backend local]\nkind = local\n%s\n' "$bad" >"$WORK/conf"
	check_not cubefs -f --state "$WORK/other" --config "$WORK/conf" "$MNT" 2>"$WORK/said"
	check grep -q "${bad%% =*}" "$WORK/said"
done
