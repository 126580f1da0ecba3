#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a create line wants to find inside: user, host.NAME, gpu, privileged, require, backend; every wrong value.
. "$(dirname "$0")/lib.sh"
start_cubefs

refused() { # ERRNO REGEX KEYS: nothing is left, the sentence says why
	expect_error "$1" "$MNT/error" "$2" put "$MNT/ctl" "create x $3"
	check_not test -e "$MNT/x"
}

# ---- host.NAME ----
sandbox h host.db=10.1.2.3 host.six.example=fd00::1 user=root
check_eq "$(run h 'getent hosts db six.example | tr -s " "')" $'10.1.2.3 db\nfd00::1 six.example'
check_eq "$(run h 'id -u; echo $HOME')" $'0\n/root'
put "$MNT/ctl" 'rename h i'
check_eq "$(run i 'grep -c db /etc/hosts')" 1
refused EINVAL 'host\.db=nowhere' host.db=nowhere
refused EINVAL 'host\.db=10\.1\.2' host.db=10.1.2
refused EINVAL 'host\.: no name' host.=10.1.2.3
refused EINVAL 'no name of a host' host.-a=10.1.2.3
refused EINVAL 'no name of a host' "'host.a b=10.1.2.3'"
refused EINVAL 'given twice' 'host.a=1.2.3.4 host.a=1.2.3.5'

# ---- gpu, privileged, require ----
refused EOPNOTSUPP gpu gpu=yes
refused EINVAL gpu=many gpu=many
refused EOPNOTSUPP privileged privileged=yes
refused EINVAL privileged=maybe privileged=maybe
refused EOPNOTSUPP 'require=kvm: .*kvm' require=kvm
refused EOPNOTSUPP 'require=gpu: ' require=root,gpu
refused EOPNOTSUPP 'require=privileged: ' require=privileged
refused EINVAL "'teleport' is nothing that can be required" require=exec,teleport
refused EINVAL "'' is nothing" require=
refused EINVAL "'' is nothing" require=exec,
refused ENOENT "no backend 'nowhere'" backend=nowhere
sandbox r require=root,exec,files,stop gpu=no privileged=no backend=local
check_eq "$(run r 'id -u')" 0
if grep -q '^missing net_open ' "$MNT/backends/local/status"; then
	refused EOPNOTSUPP 'require=net: ' require=net
else
	sandbox n require=net
fi

# ---- user ----
refused EINVAL 'user=' user=
refused EINVAL 'user=Big' user=Big
refused EINVAL 'user=1st' user=1st
refused EINVAL 'user=a/b' user=a/b
refused EINVAL 'a UID is' user=dev:0
refused EINVAL 'a UID is' user=dev:x
refused EINVAL 'a UID is' user=dev:4000000000
refused EINVAL 'root has the number 0' user=root:5
if grep -q '^missing accounts ' "$MNT/backends/local/status"; then
	refused EOPNOTSUPP 'user' user=dev
	exit 0
fi
sandbox u user=dev:1234 env.EXTRA=1
U=$MNT/u
check_eq "$(field "$U/status" user)" dev
check_eq "$(run u 'id -un; id -u; id -g; echo $HOME $USER $LOGNAME $EXTRA; cd; pwd; echo mine >note; stat -c %u:%g:%a /home/dev')" \
	$'dev\n1234\n1234\n/home/dev dev dev 1\n/home/dev\n1234:1234:755'
run u 'cd /workspace; echo own >file; stat -c %u file' >"$WORK/out"
check_eq "$(cat "$WORK/out")" 1234
mkdir "$U/jobs/j" "$U/jobs/root" "$U/sessions/s" "$U/sessions/root"
put "$U/jobs/j/cmd" 'id -un; pwd'
check_eq "$(cat <>"$U/jobs/j/output")" $'dev\n/workspace'
put "$U/sessions/s/exec" 'id -un'
check_eq "$(cat "$U/sessions/s/exec")" dev
# another one by its own word
put "$U/jobs/root/user" root
put "$U/jobs/root/cmd" 'id -u'
check_eq "$(cat <>"$U/jobs/root/output")" 0
put "$U/sessions/root/user" root
put "$U/sessions/root/exec" 'id -u; cat /home/dev/note'
check_eq "$(cat "$U/sessions/root/exec")" $'0\nmine'
# it stays so over a stop, and over the daemon's end
put "$U/ctl" 'stop 0'
put "$U/ctl" start
check_eq "$(run u 'id -un')" dev
kill_cubefs
start_cubefs
put "$U/ctl" 'wait running 60'
check_eq "$(run u 'id -un; echo $HOME')" $'dev\n/home/dev'
# one that is there; its number must fit; a number that is taken
sandbox d user=daemon
check_eq "$(run d 'id -un; id -u')" $'daemon\n1'
refused EINVAL 'the template has it with the number 1' user=daemon:77
refused EINVAL 'another user of that number' user=other:1
sandbox f user=free
check_eq "$(run f 'test "$(id -u)" -ge 1000 && id -un && touch /workspace/x && echo yes')" $'free\nyes'
