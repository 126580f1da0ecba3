#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Templates that are built: steps and Dockerfiles, what is done once, what is refused, ends of all kinds.
. "$(dirname "$0")/lib.sh"
require busybox tar
start_cubefs
T=$MNT/backends/local/templates
gone() { rmdir "$1" 2>/dev/null; }
put() { printf "%s\n" "$2" >"$1" || { tail -n 1 "$MNT/error" >&2; fail "put $2"; }; }
mkdir -p "$WORK/root/bin" "$WORK/root/etc"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat ls echo id pwd env mkdir chmod rm cp mv test stat date sleep ln; do ln -s busybox "$WORK/root/bin/$name"; done
printf 'root:x:0:0::/root:/bin/sh\nworker:x:1000:1000::/:/bin/sh\n' >"$WORK/root/etc/passwd"
printf 'root:x:0:\nworker:x:1000:\n' >"$WORK/root/etc/group"
mkdir "$T/base:1"
put "$T/base:1/ctl" "import $WORK/root"
layers() { find "$STATE/backends/local/templates" -maxdepth 1 -name '~*' 2>/dev/null | wc -l; }
boxes() { find "$STATE/backends/local/cubes" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
no_boxes() { [ "$(boxes)" = 0 ]; }

# ---- steps ----
mkdir -p "$WORK/src/sub"
echo one >"$WORK/src/one"
echo deep >"$WORK/src/sub/deep"
ln -s one "$WORK/src/link"
chmod 755 "$WORK/src/one"
mkdir "$T/made"
check_eq "$(field "$T/made/status" state)" none
cat >"$T/made/build" <<E2
# a template of steps
from base:1
env GREETING='hello there'
workdir /srv/app
run echo "\$GREETING" >greeting; pwd >where; \\
    id -u >who
copy $WORK/src /opt/src
copy $WORK/src/one /etc/
copy $WORK/src/one /new/dir/named
user worker
run id -u >/tmp/worker; test ! -w /etc/passwd
user root
run rm /opt/src/sub/deep; echo 'of the second' >/etc/second; echo mark >>/etc/hosts
E2
check_match "$(cat "$T/made/build")" '^# a template of steps'
put "$T/made/ctl" build
check_eq "$(field "$T/made/status" state)" ready
info=$(cat "$T/made/info")
check_match "$info" 'source build'
check_match "$info" 'fingerprint sha256:[0-9a-f]{64}'
check_match "$info" 'env GREETING=hello there'
check_match "$info" 'workdir /srv/app'
check_match "$(cat "$T/made/log")" '11/11 run rm /opt/src/sub/deep'
sandbox dev template=made
check_eq "$(run dev 'cat /srv/app/greeting /srv/app/where /srv/app/who /tmp/worker')" $'hello there\n/srv/app\n0\n1000'
check_eq "$(run dev 'cat /opt/src/one /opt/src/link /etc/one /new/dir/named /etc/second; ls /opt/src/sub')" \
	$'one\none\none\none\nof the second'
check_eq "$(run dev 'stat -c "%a %u" /opt/src/one /new/dir; echo $GREETING; pwd')" $'755 0\n755 0\nhello there\n/workspace'
check_not run dev 'cat /etc/hosts | while read -r l; do case $l in mark) exit 0;; esac; done; exit 1'
check_match "$(run dev 'cat /etc/hosts')" 'dev'
rmdir "$MNT/dev"
wait_for 30 no_boxes
n=$(layers)
check_eq "$n" 7
check_eq "$(cd "$T" && echo *)" 'base:1 host made' # layers are not shown

# again: nothing runs; another step at the end: only that
steps() { grep -c 'done before' "$T/made/log" || true; }
before=$(steps)
put "$T/made/ctl" build
check_eq "$(($(steps) - before))" 7
check_eq "$(layers)" "$n"
before=$(steps)
echo 'run echo third >/etc/third' >>"$T/made/build"
put "$T/made/ctl" build
check_eq "$(($(steps) - before))" 7
check_eq "$(layers)" $((n + 1))
# another content of what is copied: that step and those behind it
echo two >"$WORK/src/one"
before=$(steps)
put "$T/made/ctl" build
check_eq "$(($(steps) - before))" 2
check_eq "$(layers)" $((n + 1))
sandbox dev template=made
check_eq "$(run dev 'cat /opt/src/one /etc/third')" $'two\nthird'
# in use: neither replaced nor removed, nor what it was built on
echo 'run echo fourth >/etc/fourth' >>"$T/made/build"
expect_error EBUSY "$MNT/error" 'use' bash -c "echo build >'$T/made/ctl'"
expect_errno EBUSY rmdir "$T/made"
rmdir "$MNT/dev"
wait_for 30 no_boxes
put "$T/made/ctl" build
gone "$T/base:1" || true
wait_for 20 test -d "$T/base:1"
sandbox dev template=made
check_eq "$(run dev 'cat /etc/fourth; cat /etc/passwd | while read -r l; do echo "$l"; break; done')" $'fourth\nroot:x:0:0::/root:/bin/sh'
rmdir "$MNT/dev"

# ---- of a template that was built, on this machine's own ----
mkdir "$T/more"
printf 'from made\nrun echo more >/etc/more\n' >"$T/more/build"
put "$T/more/ctl" build
sandbox dev template=more
check_eq "$(run dev 'cat /etc/more /etc/third; echo $GREETING')" $'more\nthird\nhello there'
rmdir "$MNT/dev"
mkdir "$T/hosted"
printf 'from host\nrun bash -c "echo of bash" >/var/made\n' >"$T/hosted/build"
put "$T/hosted/ctl" build
sandbox dev template=hosted
check_eq "$(run dev 'bash -c "cat /var/made"')" 'of bash'
rmdir "$MNT/dev"
wait_for 20 gone "$T/hosted"

# ---- a Dockerfile as it is ----
mkdir -p "$WORK/context/files"
echo app >"$WORK/context/app"
echo data >"$WORK/context/files/data"
echo secret >"$WORK/outside"
put "$T/base:1/aliases" 'image:docker.example/base:2'
mkdir "$T/docker"
cat >"$T/docker/build" <<'E2'
# syntax=docker/dockerfile:1
ARG BASE=docker.example/base
FROM ${BASE}:2 AS one
LABEL a=b \
      c="d e"
ARG WHAT=thing
ENV A=1 B="two words" C=$A-${WHAT}-${NONE:-other}
ENV OLD some old value
WORKDIR /srv
WORKDIR app
COPY app ./
COPY ["files", "/data/"]
ADD app files /both/
# a comment between
RUN echo "$A:$B:$C:$OLD:$WHAT" >/out && \
    # and one inside

    pwd >>/out
RUN ["sh", "-c", "echo \"exec form\" >>/out"]
USER 1000:1000
RUN id -u >/tmp/id
USER root
EXPOSE 80/tcp
ENTRYPOINT ["/bin/sh", "-c"]
CMD echo 'hi'
E2
expect_error EINVAL "$MNT/error" 'DIRECTORY' bash -c "echo build >'$T/docker/ctl'"
put "$T/docker/ctl" "build $WORK/context"
sandbox dev template=docker
check_eq "$(run dev 'cat /out /srv/app/app /data/data /both/app /both/data /tmp/id')" \
	$'1:two words:-thing-other:some old value:thing\n/srv/app\nexec form\napp\ndata\napp\ndata\n1000'
check_eq "$(run dev 'echo "$B:$C:$OLD:$WHAT"')" 'two words:-thing-other:some old value:'
rmdir "$MNT/dev"
check_match "$(cat "$T/docker/info")" 'entrypoint /bin/sh'
check_match "$(cat "$T/docker/info")" "entrypoint echo 'hi'"
check_match "$(cat "$T/docker/info")" 'workdir /srv/app'

# ---- refused, with the number of the line, and nothing changed ----
mkdir "$T/bad"
refused() { # ERRNO REGEX TEXT
	expect_error "$1" "$MNT/error" "$2" bash -c "printf '%b' \"\$1\" >'$T/bad/build'" - "$3"
	check_eq "$(cat "$T/bad/build")" ''
}
refused EINVAL "line 2: 'frobnicate' is no step" 'from base:1\nfrobnicate x\n'
refused EINVAL 'begins with' 'run true\n'
refused EINVAL 'line 3: from' 'from base:1\n\nfrom base:1\n'
refused EINVAL 'line 2: copy takes 2' 'from base:1\ncopy /x\n'
refused EINVAL 'line 2: .*absolute' 'from base:1\ncopy x /y\n'
refused EINVAL 'line 2: .*workspace' 'from base:1\ncopy /x /workspace/y\n'
refused EINVAL 'line 2: .*NAME=VALUE' 'from base:1\nenv 1A=2\n'
refused EINVAL 'line 2: .*package' 'from base:1\napt -y\n'
refused EINVAL 'line 2: .*quote' "from base:1\nenv A='x\n"
refused EOPNOTSUPP 'line 4: choco' 'from base:1\nrun a \\\n b\nchoco x\n'
refused EINVAL 'line 2: net' 'from base:1\nnet policy\n'
refused EINVAL 'line 2: a second FROM' 'FROM a\nFROM b\n'
refused EINVAL 'line 2: .*stands before' 'ARG A=1\nRUN x\n'
refused EINVAL "line 3: 'BOGUS'" 'FROM a\n\nBOGUS x\n'
refused EINVAL 'line 2: VOLUME is not taken' 'FROM a\nVOLUME /x\n'
refused EINVAL 'line 2: .*--chown' 'FROM a\nCOPY --chown=1 a /b\n'
refused EINVAL 'line 2: .*--mount' 'FROM a\nRUN --mount=type=cache,target=/x true\n'
refused EINVAL 'line 2: .*patterns' 'FROM a\nCOPY *.c /b/\n'
refused EINVAL 'line 2: .*context' 'FROM a\nADD https://example.org/x /b\n'
refused EINVAL 'line 2: .*archives' 'FROM a\nADD x.tar.gz /b\n'
refused EINVAL 'line 2: .*here-doc' 'FROM a\nRUN cat <<EOF\n'
refused EINVAL 'line 1: .*scratch' 'FROM scratch\n'
refused EINVAL 'line 1: .*platform' 'FROM --platform=x a\n'
refused EINVAL 'line 2: .*end' 'FROM a\nENV A="x\n'
expect_error EINVAL "$MNT/error" 'no steps' bash -c "echo build >'$T/bad/ctl'"
expect_errno EINVAL bash -c "echo 'build relative' >'$T/bad/ctl'"

# ---- what fails on the way ----
fails() { # ERRNO REGEX TEXT [HOSTDIR]
	printf '%b' "$3" >"$T/bad/build"
	expect_error "$1" "$MNT/error" "$2" bash -c "echo 'build ${4-}' >'$T/bad/ctl'"
	check_eq "$(field "$T/bad/status" state)" error
	check_match "$(cat "$T/bad/status")" 'reason .+'
	wait_for 30 no_boxes
}
fails ENOENT "line 1: .*'nothing'" 'from nothing\n'
fails ENOENT 'nothere' "from base:1\ncopy $WORK/nothere /x\n"
fails EREMOTEIO 'line 3: .*code 7' 'from base:1\nrun echo fine >/etc/fine\nrun echo seen; exit 7\n'
check_match "$(cat "$T/bad/log")" ' seen'
fails EREMOTEIO 'line 3: there is no user' 'from base:1\nuser nobody-here\nrun true\n'
fails EINVAL 'leads out' 'FROM base:1\nCOPY ../outside /x\n' "$WORK/context"
fails EINVAL 'itself' 'from bad\n'
# the sources of a Dockerfile begin at its directory, whatever they are called
ln -s "$WORK/outside" "$WORK/context/absolute"
fails ENOENT 'etc/passwd' 'FROM base:1\nCOPY /etc/passwd /x\n' "$WORK/context"

# what was done before the failure is not done again
printf 'from base:1\nrun echo fine >/etc/fine\nrun echo better\n' >"$T/bad/build"
put "$T/bad/ctl" build
check_eq "$(grep -c 'done before' "$T/bad/log")" 1
check_eq "$(field "$T/bad/status" state)" ready
check_eq "$(field "$T/bad/status" reason)" -

# ---- cancelled, and killed ----
mkdir "$T/slow"
printf 'from base:1\nrun echo first >/etc/first\nrun echo begun; sleep 1000\n' >"$T/slow/build"
begun() { grep -q ' begun$' "$T/slow/log"; }
(echo build >"$T/slow/ctl") 2>/dev/null &
writer=$!
wait_for 30 begun
check_match "$(cat "$T/slow/status")" 'state building 3/3 run echo begun'
expect_errno EBUSY rmdir "$T/slow"
expect_errno EBUSY bash -c "echo build >'$T/slow/ctl'"
sandbox dev template=made # others are not kept waiting
rmdir "$MNT/dev"
put "$T/slow/ctl" cancel
check_not wait "$writer"
wait_for 30 no_boxes
check_match "$(cat "$T/slow/status")" 'reason .*interrupted'
lines=$(grep -c . "$T/slow/log")
(echo build >"$T/slow/ctl") 2>/dev/null &
writer=$!
begun_again() { tail -n "+$((lines + 1))" "$T/slow/log" | grep -q ' begun$'; }
wait_for 30 begun_again
kill_cubefs
wait "$writer" || true
start_cubefs
wait_for 30 no_boxes
wait_for 30 test -e "$T/slow/build"
printf 'from base:1\nrun echo first >/etc/first\nrun echo second >/etc/second\n' >"$T/slow/build"
ready() { [ "$(field "$T/base:1/status" state)" = ready ]; }
wait_for 30 ready
check begun_again # the log is there again
lines=$(grep -c . "$T/slow/log")
put "$T/slow/ctl" build
check_eq "$(tail -n "+$((lines + 1))" "$T/slow/log" | grep -c 'done before')" 1
sandbox dev template=slow
check_eq "$(run dev 'cat /etc/first /etc/second')" $'first\nsecond'
rmdir "$MNT/dev"

# ---- all of it goes ----
for t in more made docker bad slow; do wait_for 20 gone "$T/$t"; done
none_left() { [ "$(layers)" = 0 ]; }
wait_for 20 none_left
wait_for 20 gone "$T/base:1"
