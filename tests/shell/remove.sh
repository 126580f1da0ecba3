#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rm -r NAME means rmdir NAME, and no more.
. "$(dirname "$0")/lib.sh"
require python3 busybox
start_cubefs
cd "$MNT"

fill() { # NAME
	sandbox "$1"
	run "$1" 'mkdir -p d/e; echo x > d/e/f; chmod 400 d/e/f; ln -s / d/root; echo y > /etc/mine'
	mkdir "$1/jobs/j" "$1/sessions/s"
}

gone() { # NAME
	check_not test -e "$1"
	mkdir "$1"
	check_eq "$(run "$1" 'ls -A; cat /etc/mine 2>/dev/null | wc -l')" 0 'a new one of that name'
	rmdir "$1"
}

fill a; rm -r a; gone a
fill a; rm -rf a; gone a
fill a; busybox rm -r a; gone a
fill a; find a -delete; gone a
fill a; python3 -c 'import shutil; shutil.rmtree("a")'; gone a

# several, and all at once: the sandboxes and nothing else
fill a; fill b
rm -rf ./* 2>/dev/null || true
check_eq "$(ls)" "$(printf '%s\n' README backends clone ctl error events list volumes)"
check ls backends/local/templates/host >/dev/null
expect_errno EPERM rm README
check cat README >/dev/null

# interrupted before the rmdir nothing has happened; others see everything meanwhile
fill a
python3 - <<'E2'
import os, subprocess
os.unlink('a/ctl')
assert os.listdir('a/files') == [], os.listdir('a/files')
assert os.listdir('a/workspace/d') == []
assert 'etc' in subprocess.run(['ls', 'a/files'], capture_output=True, text=True).stdout.split()
E2
check_eq "$(cat a/workspace/d/e/f)" x
check test -e a/ctl
# the mark ends at the first open or create there
python3 - <<'E2'
import os
os.unlink('a/ctl')
assert os.listdir('a/files') == []
open('a/status').close()
assert 'etc' in os.listdir('a/files')
E2
check_eq "$(run a 'echo alive')" alive

# what is unlinked below files/ by somebody who does not remove the sandbox is really removed
rm -r a/workspace/d
check_eq "$(run a 'ls')" ''
rmdir a

# rmdir while things run, are open, or are the current directory
sandbox a
mkdir a/jobs/j; echo 'sleep 100' >a/jobs/j/cmd
exec 3<>a/jobs/j/output 4<a/files/etc/passwd
rmdir a
check_eq "$(cat <&3)" ''
exec 3>&- 4>&-
gone a

# a creation that is under way
mkdir a; rmdir a
gone a
cd /
