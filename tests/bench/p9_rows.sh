# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The rows about 9P: over a unix socket, with messages of 128 KiB, beside diod that serves the same directory. The
# two take turns, and the best of each counts: what else the machine does hits both.

P9=$BUILD/tests/bench/bench-p9
P9_ROUNDS=${CUBEFS_BENCH_ROUNDS:-15} P9_MIB=${CUBEFS_BENCH_MIB:-256}
P9_UP='' OWN='' OTHER=''

# A directory that is in a sandbox, and that diod exports, if there is one.
p9_up() {
	[ -z "$P9_UP" ] || return 0
	make p9
	mkdir "$WORK/served"
	head -c $((P9_MIB * 1048576)) /dev/urandom >"$WORK/served/file"
	put "$MNT/p9/ctl" "bind $WORK/served /workspace/served"
	P9_UP=yes
	diod_up "$WORK/served" || note '  diod' "$(tail -n 1 "$WORK/diod.log" 2>/dev/null)"
}

p9_own() { # WHAT COUNT
	"$P9" "$WORK/9p" /p9/files/workspace/served "$1" file "$2"
}

p9_other() { # WHAT COUNT: nothing without diod
	[ ! -S "$WORK/diod" ] || "$P9" "$WORK/diod" "$WORK/served" "$1" file "$2"
}

# Leaves the best of both in OWN and OTHER; sort's options bring the best to the front.
p9_turns() { # WHAT COUNT ROUNDS SORT-OPTION
	local i own=() other=()
	p9_up
	for ((i = 0; i < $3; i++)); do
		own+=("$(p9_own "$1" "$2" | p50)")
		other+=("$(p9_other "$1" "$2" | p50)")
	done
	OWN=$(printf '%s\n' "${own[@]}" | sort "$4" | head -n 1)
	OTHER=$(printf '%s\n' "${other[@]}" | sort "$4" | head -n 1)
}

p9_ratio() { # OWN OTHER
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f x", a / b }'
}

# Microseconds: at most so many times diod's.
p9_trips() { # WHAT LABEL
	p9_turns "$1" 2000 "$P9_ROUNDS" -n
	if [ -z "$OTHER" ]; then
		line "$2" "$OWN us" '-' '-'
		return
	fi
	line "$2" "$OWN us" "at most 1.2 x diod ($(p9_ratio "$OWN" "$OTHER"))" \
		"$(verdict "$OWN" "$(awk -v b="$OTHER" 'BEGIN { print 1.2 * b }')")"
	line '  diod' "$OTHER us" '-' '-'
}

row_p9_read() {
	p9_turns read 2 "$P9_ROUNDS" -rn
	if [ -z "$OTHER" ]; then
		line "9P: a file of $P9_MIB MiB, read" "$OWN MiB/s" '-' '-'
		return
	fi
	line "9P: a file of $P9_MIB MiB, read" "$OWN MiB/s" "at least diod ($(p9_ratio "$OWN" "$OTHER"))" \
		"$(verdict "$OTHER" "$OWN")"
	line '  diod' "$OTHER MiB/s" '-' '-'
}

row_p9_stat() {
	p9_trips stat '9P: Tgetattr of a real file, p50'
}

row_p9_walk() {
	p9_trips walk '9P: Twalk to a real file and Tclunk, p50'
}

row_p9_crowd() {
	p9_turns crowd 64 3 -rn
	line '9P: 64 clients at once, Tgetattr' "$OWN /s" '-' '-'
	[ -z "$OTHER" ] || line '  diod' "$OTHER /s" '-' '-'
}

# The connections are held by a process that hangs up when its stdin ends.
row_p9_idle() {
	local before kib=0 count=200 to
	p9_up
	p9_own stat 100 >/dev/null
	before=$(daemon_kib)
	mkfifo "$WORK/idle.in" "$WORK/idle.out"
	p9_own idle "$count" <"$WORK/idle.in" >"$WORK/idle.out" &
	exec {to}>"$WORK/idle.in"
	read -r _ <"$WORK/idle.out" && kib=$(($(daemon_kib) - before))
	exec {to}>&-
	wait "$!"
	line "9P: memory of an idle connection, of $count" "$(awk -v k="$kib" -v n="$count" 'BEGIN { printf "%.1f KiB", k / n }')" \
		'less than 64 KiB' "$(verdict "$kib" $((count * 64)))"
}
