# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What every shell test begins with:
#
#     . "$(dirname "$0")/lib.sh"
#     start_cubefs
#     sandbox dev
#     check_eq "$(run dev 'echo hello')" hello
#
# A test is one file about one behaviour; it runs beside others, in a directory of its own, $WORK, with
# its own state directory, mount point and log. The first command that fails fails it (set -e), and so
# does, at its end: a warning, an error or a sanitizer's report in the daemon's log that was not announced
# (allow_log), a daemon that did not end with 0, and whatever is left: a mount, a process, a control
# group, a file. The runner (as.sh) sees to the last ones; run by hand a test starts it itself.
#
# The binaries are those of CUBEFS_BUILD_DIR (build/dev unless set).
set -Eeuo pipefail

if [ -z "${CUBEFS_TEST_DIR-}" ]; then
	mode=user
	[ "$(id -u)" -ne 0 ] || mode=root
	exec "$(dirname "${BASH_SOURCE[0]}")/as.sh" "$mode" "$0" "$@"
fi

WORK=$CUBEFS_TEST_DIR
MNT=${CUBEFS_TEST_TREE:-$WORK/mnt}
STATE=$WORK/state
LOG=$WORK/log
TEST_UID=$(id -u)
declare -A PID_OF=() STATE_OF=() LOG_OF=() # of each daemon, by its mount point; pid empty: ended
EXITS=()      # commands of on_exit
ALLOWED_LOG=() # patterns of allow_log
CUBEFS_PID=

# ---- failing and skipping ----

fail() { # SENTENCE: the test's end
	printf 'FAIL: %s\n' "$*" >&2
	local i
	for ((i = 1; i < ${#FUNCNAME[@]}; i++)); do
		printf '    %s:%s %s\n' "${BASH_SOURCE[i]##*/}" "${BASH_LINENO[i - 1]}" "${FUNCNAME[i]}" >&2
	done
	exit 1
}

skip() { # REASON
	printf 'skip: %s\n' "$*"
	exit 77
}

require() { # COMMAND...
	local command
	for command in "$@"; do
		command -v "$command" >/dev/null || skip "$command is not installed"
	done
}

require_root() {
	[ "$TEST_UID" -eq 0 ] || skip 'this is about what root gets'
}

require_user() {
	[ "$TEST_UID" -ne 0 ] || skip 'this is about what an ordinary user gets'
}

on_exit() { # COMMAND WORD...: run at the end, the latest first, whatever happens
	local words
	printf -v words '%q ' "$@"
	EXITS+=("$words")
}

allow_log() { # REGEX: lines of the daemon's log that this test brings about
	ALLOWED_LOG+=("$1")
}

# ---- waiting and checking ----

wait_for() { # SECONDS COMMAND...: until it succeeds
	local deadline=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	while ! "$@"; do
		[ "${EPOCHREALTIME/./}" -lt "$deadline" ] || fail "waited in vain for: $*"
		sleep 0.02
	done
}

check() { # COMMAND...: succeeds
	"$@" || fail "failed: $*"
}

check_not() { # COMMAND...: fails
	if "$@"; then
		fail "succeeded: $*"
	fi
}

check_eq() { # ACTUAL EXPECTED [WHAT]
	[ "$1" = "$2" ] || fail "${3:-value} is '$1', expected '$2'"
}

check_match() { # TEXT REGEX [WHAT]
	[[ $1 =~ $2 ]] || fail "${3:-text} is '$1', expected to match '$2'"
}

declare -A ERRNO_TEXT=(
	[EPERM]='Operation not permitted' [ENOENT]='No such file or directory' [EINTR]='Interrupted system call'
	[EIO]='Input/output error' [EAGAIN]='Resource temporarily unavailable' [EACCES]='Permission denied'
	[EBUSY]='Device or resource busy' [EEXIST]='File exists' [EXDEV]='Invalid cross-device link'
	[ENOTDIR]='Not a directory' [EISDIR]='Is a directory' [EINVAL]='Invalid argument' [EFBIG]='File too large'
	[ENOSPC]='No space left on device' [ESPIPE]='Illegal seek' [EROFS]='Read-only file system'
	[EPIPE]='Broken pipe' [ENAMETOOLONG]='File name too long' [ENOTEMPTY]='Directory not empty'
	[ELOOP]='Too many levels of symbolic links' [EOPNOTSUPP]='Operation not supported'
	[ETIMEDOUT]='Connection timed out' [EHOSTDOWN]='Host is down' [EHOSTUNREACH]='No route to host'
	[ESTALE]='Stale file handle' [EDQUOT]='Disk quota exceeded' [EREMOTEIO]='Remote I/O error'
	[EADDRINUSE]='Address already in use' [ENOTCONN]='Transport endpoint is not connected' [ENXIO]='No such device or address'
)

expect_errno() { # ERRNO COMMAND...: it fails with that error, as its own message says
	local name=$1 text=${ERRNO_TEXT[$1]-} message
	shift
	[ -n "$text" ] || fail "expect_errno does not know $name"
	if message=$("$@" 2>&1 >/dev/null); then
		fail "succeeded, expected $name: $*"
	fi
	[[ $message == *"$text"* ]] || fail "said '$message', expected $name ($text): $*"
}

expect_error() { # ERRNO FILE REGEX COMMAND...: and the last line of FILE (an `error`) has the sentence
	local name=$1 file=$2 regex=$3 last
	shift 3
	expect_errno "$name" "$@"
	last=$(tail -n 1 "$file")
	[[ $last == *" $name: "* ]] || fail "$file says '$last', expected $name"
	[[ $last =~ $regex ]] || fail "$file says '$last', expected to match '$regex'"
}

put() { # FILE LINE: what `echo LINE > FILE` does
	printf '%s\n' "$2" >"$1"
}

field() { # FILE KEY: the value of a `key value` line
	awk -v key="$2" '$1 == key { sub(/^[^ ]+ ?/, ""); print; exit }' "$1"
}

# ---- the daemon ----

is_mounted() { # DIRECTORY
	grep -qF " $1 " /proc/self/mounts
}

daemon_ended() { # PID
	! kill -0 "$1" 2>/dev/null
}

up_or_ended() { # PID MNT
	is_mounted "$2" || daemon_ended "$1"
}

# Starts a daemon with $STATE, $MNT and $LOG (a second one: STATE=... MNT=... LOG=... start_cubefs), waits
# until it is mounted, leaves its process id in CUBEFS_PID.
start_cubefs() { # [OPTION...]
	if [ -n "${CUBEFS_TEST_TREE-}" ]; then
		take_tree "$@"
		return
	fi
	cubefs -f --state "$STATE" "$@" "$MNT" >>"$LOG" 2>&1 </dev/null &
	CUBEFS_PID=$!
	PID_OF[$MNT]=$CUBEFS_PID
	STATE_OF[$MNT]=$STATE
	LOG_OF[$MNT]=$LOG
	wait_for 60 up_or_ended "$CUBEFS_PID" "$MNT"
	if daemon_ended "$CUBEFS_PID"; then
		PID_OF[$MNT]=
		fail "cubefs ended before it was mounted: $(tail -n 5 "$LOG")"
	fi
}

# In a guest (tests/guest) the daemon is another machine's, and its tree mounted already: at $CUBEFS_TEST_TREE.
take_tree() { # [OPTION...]
	[ "$#" -eq 0 ] || skip "the daemon has to be started with $*"
}

# The daemon's supervisor and workers (not what runs in sandboxes).
daemon_pids() { # [PID]
	local pid=${1:-$CUBEFS_PID} child
	echo "$pid"
	while read -r child; do
		[ -z "$child" ] || daemon_pids "$child"
	done < <(pgrep -P "$pid" '^cubefs' || true)
}

stop_cubefs() { # [MNT]: unmounts; the daemon must end with 0
	local mnt=${1:-$MNT} code=0
	cubefs umount "$mnt"
	wait_for 60 daemon_ended "${PID_OF[$mnt]}"
	wait "${PID_OF[$mnt]}" || code=$?
	PID_OF[$mnt]=
	[ "$code" -eq 0 ] || fail "cubefs at $mnt ended with $code: $(tail -n 20 "${LOG_OF[$mnt]}")"
}

# Kills every process of the daemon, and takes away the dead mount.
kill_cubefs() { # [MNT]
	local mnt=${1:-$MNT} pids pid
	pid=${PID_OF[$mnt]}
	mapfile -t pids < <(daemon_pids "$pid")
	kill -KILL "${pids[@]}"
	wait "$pid" 2>/dev/null || true
	PID_OF[$mnt]=
	! is_mounted "$mnt" || fusermount3 -u -z "$mnt"
}

worker() { # the worker's process id; the daemon has a supervisor. One that was killed may be a zombie for a while
	pgrep -r R,S,D -P "$(pgrep -P "$CUBEFS_PID" '^cubefs-super')" '^cubefs$'
}

one_worker() { # leaves it in WORKER; a holder that was made this moment has its name yet
	WORKER=$(worker)
	[[ $WORKER =~ ^[0-9]+$ ]]
}

new_worker() { # OLD
	one_worker && [ "$WORKER" != "$1" ]
}

# Kills the worker, and waits until there is another one: not that it serves, which is the callers' matter.
kill_worker() {
	local old
	wait_for 30 one_worker
	old=$WORKER
	kill -KILL "$old"
	wait_for 30 new_worker "$old"
}

# ---- sandboxes ----

state_is() { # NAME STATE
	[ "$(field "$MNT/$1/status" state)" = "$2" ]
}

sandbox() { # NAME [KEY=VALUE...]: makes it, and waits until it runs
	if [ "$#" -eq 1 ]; then
		mkdir "$MNT/$1"
		put "$MNT/$1/ctl" 'wait running 60'
	else
		put "$MNT/ctl" "create $*"
	fi
	state_is "$1" running || fail "$1 is $(field "$MNT/$1/status" state): $(tail -n 1 "$MNT/$1/error")"
}

# Runs a command in the main session: its output is ours, its exit code too.
run() { # NAME TEXT
	put "$MNT/$1/exec" "$2"
	cat "$MNT/$1/exec"
	local code
	code=$(cat "$MNT/$1/exit")
	[ "$code" != - ] || fail "$1/exit is '-' after a command"
	return "$code"
}

# Where a sandbox's file system is as its own processes have it, past the mount. For root.
inside_root() { # NAME
	local mark=.inside.$$ dir
	: >"$MNT/$1/files/$mark"
	for dir in /proc/[0-9]*/root; do
		[ -e "$dir/$mark" ] || continue
		rm "$dir/$mark"
		echo "$dir"
		return
	done
	fail "no process of $1 is to be found"
}

# ---- a container engine (tests/engine.sh), for root ----

ENGINE=$(dirname "$0")/../engine.sh

# Starts one below $D that is ended with the test, and has $CONF name it.
start_engine() { # KIND
	D=$WORK/engine
	CONF=$WORK/cubefs.conf
	on_exit "$ENGINE" down "$1" "$D"
	"$ENGINE" up "$1" "$D" >"$WORK/engine.out" 2>&1 || {
		[ "$?" -ne 77 ] || skip "$(cat "$WORK/engine.out")"
		fail "no engine: $(cat "$WORK/engine.out")"
	}
	printf '[backend docker]\nurl = unix://%s/sock\ntemplate = cubefs-test\n' "$D" >"$CONF"
}

api() { # METHOD PATH: what the engine answers
	curl -sSf --unix-socket "$D/sock" -X "$1" "http://engine/v1.41$2"
}

boxes() { # how many containers it has
	api GET '/containers/json?all=1' | grep -o '"Id":' | wc -l
}

# ---- a sandbox service (tests/servers) ----

SERVERS=$(dirname "$0")/../servers
SERVICE_KEY=e2b_0123456789abcdef0123456789abcdef01234567

# Starts one below $WORK/service that is ended with the test; leaves its address in SERVICE_URL.
start_service() { # PROGRAM [OPTION...]
	mkdir "$WORK/service"
	python3 -B "$SERVERS/$1" --top "$WORK/service" --ready "$WORK/service.url" --key "$SERVICE_KEY" "${@:2}" \
		2>"$WORK/service.err" &
	SERVICE_PID=$!
	on_exit stop_service
	wait_for 30 test -s "$WORK/service.url"
	# shellcheck disable=SC2034 # for who reads this file
	SERVICE_URL=$(cat "$WORK/service.url")
}

# The npm package of an official client, for scripts of tests/servers/proof, which are copied to $WORK/proof: packages
# are looked for beside a script, and those are below build/.
require_clients() { # PACKAGE
	local dir bin
	for dir in "$CUBEFS_BUILD_DIR/node" "$CUBEFS_BUILD_DIR/../node"; do
		[ -d "$dir/node_modules/$1" ] || continue
		cp -r "$SERVERS/proof" "$WORK"
		ln -s "$dir/node_modules" "$WORK/node_modules"
		for bin in "$WORK"/node_modules/node-linux-*/bin; do # installed where this machine's own is too old
			[ ! -d "$bin" ] || PATH=$bin:$PATH
		done
		return
	done
	skip "the npm package $1 is not there: tests/run.sh installs tests/servers/package.json below build/"
}

check_contracts() { # nothing that passed a service with --check differed from its contracts
	local found
	found=$(curl -sSf "$SERVICE_URL/_test/violations")
	check_match "$found" '"looked": [1-9]'
	check_match "$found" '"violations": \[\]' 'what differs from the contracts'
}

stop_service() { # it must end well, and leave nothing
	local pid=$SERVICE_PID code=0
	SERVICE_PID=
	[ -n "$pid" ] || return 0
	kill "$pid"
	wait "$pid" || code=$?
	[ "$code" -eq 0 ] || finish_problem "the service ended with $code"
	[ ! -s "$WORK/service.err" ] || finish_problem "the service said: $(cat "$WORK/service.err")"
	[ -z "$(ls -A "$WORK/service")" ] || finish_problem "the service left: $(ls -AR "$WORK/service")"
}

# ---- the end ----

state_empty() { # STATE
	[ -z "$(ls -A "$1/cubes" 2>/dev/null)" ]
}

finish_problem() { # SENTENCE
	printf 'FAIL: %s\n' "$*" >&2
	FINISH_CODE=1
}

# Destroys every sandbox that a daemon had. If it is gone, another one is started for that.
finish_sandboxes() { # MNT
	local mnt=$1 state=${STATE_OF[$1]} name
	if ! state_empty "$state" && ! is_mounted "$mnt"; then
		cubefs -f --state "$state" "$mnt" >>"${LOG_OF[$mnt]}" 2>&1 </dev/null &
		PID_OF[$mnt]=$!
		(wait_for 60 up_or_ended "$!" "$mnt")
	fi
	if is_mounted "$mnt"; then
		for name in "$mnt"/backends/*/pools/*/; do # what they keep is in no list
			[ ! -d "$name" ] || timeout 30 rmdir "$name" || finish_problem "rmdir $name failed"
		done
		# The marks of all that there ever were, for the runner's look at control groups.
		timeout 30 grep -Eo 'uid [0-9a-f]{16}' "$mnt/events" | cut -d ' ' -f 2 >>"$WORK/uids"
		while read -r name _; do
			[ -z "$name" ] || timeout 30 rmdir "$mnt/$name" || finish_problem "rmdir $name failed"
		done < <(timeout 30 cat "$mnt/list" || echo)
	fi
	(wait_for 60 state_empty "$state") || finish_problem "$state/cubes still has: $(ls -A "$state/cubes")"
}

# What a test made in a tree that others use after it.
finish_tree() {
	local name
	while read -r name _; do
		[ -z "$name" ] || timeout 60 rmdir "$MNT/$name" || finish_problem "rmdir $name failed"
	done < <(timeout 30 cat "$MNT/list" || echo)
}

finish_mount() { # MNT
	local mnt=$1 pid=${PID_OF[$1]} code=0
	if is_mounted "$mnt"; then
		timeout 60 cubefs umount "$mnt" || finish_problem "$mnt cannot be unmounted"
	fi
	if [ -n "$pid" ]; then
		(wait_for 60 daemon_ended "$pid") || finish_problem "cubefs ($pid) does not end"
		daemon_ended "$pid" || kill -KILL "$pid"
		wait "$pid" || code=$?
		[ "$code" -eq 0 ] || finish_problem "cubefs at $mnt ended with $code"
	fi
	! is_mounted "$mnt" || fusermount3 -u -z "$mnt"
}

finish_log() { # FILE: lines that should not be there
	local pattern bad
	[ -f "$1" ] || return 0
	bad=$(awk '$2 == "warning" || $2 == "error" || /Sanitizer|runtime error:|Assertion/' "$1")
	for pattern in ${ALLOWED_LOG[@]+"${ALLOWED_LOG[@]}"}; do
		bad=$(grep -vE -- "$pattern" <<<"$bad" || true)
	done
	[ -z "$bad" ] || finish_problem "unexpected in the daemon's log:"$'\n'"$bad"
}

# What the logs say to who looks for the cause.
finish_show() {
	local log
	for log in "$WORK"/log*; do
		[ -f "$log" ] || continue
		printf -- '---- %s ----\n' "${log##*/}" >&2
		if grep -q 'ERROR: .*Sanitizer\|runtime error:' "$log"; then
			grep -E -A 45 'ERROR: .*Sanitizer|WARNING: .*Sanitizer|runtime error:' "$log" | head -n 120 >&2
		else
			tail -n 40 "$log" >&2
		fi
	done
}

finish() {
	local code=$? i mnt log
	FINISH_CODE=0
	trap - ERR EXIT
	cd /
	set +e
	for ((i = ${#EXITS[@]} - 1; i >= 0; i--)); do
		eval "${EXITS[i]}"
	done
	[ -z "${CUBEFS_TEST_TREE-}" ] || finish_tree
	for mnt in "${!PID_OF[@]}"; do
		finish_sandboxes "$mnt"
		finish_mount "$mnt"
	done
	for log in "$WORK"/log*; do
		finish_log "$log"
	done
	[ "$code" -ne 0 ] || code=$FINISH_CODE
	[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || finish_show
	exit "$code"
}

trap finish EXIT
trap 'echo "FAIL: ended at ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2; exit 143' TERM
trap 'exit 130' INT
trap 'echo "FAIL: ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2' ERR
