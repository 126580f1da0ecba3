# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Completion of cubefs for bash: commands, options, mount points, sandboxes. Needs nothing but bash.

# The mount points of cubefs, one a line.
_cubefs_mounts() {
	local line point
	while IFS= read -r line; do
		[[ $line == *' - fuse.cubefs '* ]] || continue
		read -r _ _ _ _ point _ <<<"$line"
		printf '%b\n' "${point//\\0/\\00}" # \040 and the like
	done </proc/self/mountinfo
}

# The mount that names of sandboxes are about: $CUBEFS_MOUNT, else the only one.
_cubefs_mount() {
	local -a mounts
	if [[ -n ${CUBEFS_MOUNT-} ]]; then
		printf '%s\n' "$CUBEFS_MOUNT"
		return
	fi
	mapfile -t mounts < <(_cubefs_mounts)
	[[ ${#mounts[@]} -ne 1 ]] || printf '%s\n' "${mounts[0]}"
}

_cubefs_sandboxes() {
	local mount name rest
	mount=$(_cubefs_mount)
	[[ -n $mount ]] || return 0
	while read -r name rest; do
		printf '%s\n' "$name"
	done 2>/dev/null <"$mount/list" || :
}

# Those of the words (one a line on stdin) that begin with what is there, fit for the command line.
_cubefs_reply() { # BEGINNING
	local word
	COMPREPLY=()
	while IFS= read -r word; do
		[[ $word != "$1"* ]] || COMPREPLY+=("$(printf '%q' "$word")")
	done
}

_cubefs_words() { # BEGINNING WORD...
	local beginning=$1
	shift
	_cubefs_reply "$beginning" < <(printf '%s\n' "$@")
}

_cubefs_directories() { # BEGINNING
	compopt -o filenames 2>/dev/null || : # not asked by bash itself
	mapfile -t COMPREPLY < <(compgen -d -- "$1" || :)
}

_cubefs_files() { # BEGINNING
	compopt -o filenames 2>/dev/null || : # not asked by bash itself
	mapfile -t COMPREPLY < <(compgen -f -- "$1" || :)
}

# The value of an option; 1: the word before is none that takes one.
_cubefs_value() { # BEFORE BEGINNING
	case $1 in
	--config | --9p-token-file) _cubefs_files "$2" ;;
	--9p) _cubefs_words "$2" unix: tcp:127.0.0.1: tls: stdio ;;
	--state) _cubefs_directories "$2" ;;
	-o) _cubefs_words "$2" allow_other symlinks=raw owners=raw nonempty debug ;;
	*) return 1 ;;
	esac
}

_cubefs_command() { # COMMAND BEFORE BEGINNING NUMBER-OF-WORDS-BEHIND
	case $1 in
	umount | upgrade)
		[[ $4 -ne 1 ]] || _cubefs_reply "$3" < <(_cubefs_mounts)
		;;
	sh)
		if [[ $4 -eq 1 && $3 == */* ]]; then
			_cubefs_directories "$3"
		elif [[ $4 -eq 1 ]]; then
			_cubefs_reply "$3" < <(_cubefs_sandboxes)
		fi
		;;
	top)
		if [[ $3 == -* ]]; then
			_cubefs_words "$3" -b -d
		elif [[ $2 != -d ]]; then
			_cubefs_reply "$3" < <(_cubefs_mounts)
		fi
		;;
	doctor)
		_cubefs_value "$2" "$3" || _cubefs_words "$3" --config --state --9p --9p-token-file
		;;
	*) return 1 ;;
	esac
}

_cubefs() {
	local beginning=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	if [[ $COMP_CWORD -gt 1 ]] &&
		_cubefs_command "${COMP_WORDS[1]}" "$before" "$beginning" $((COMP_CWORD - 1)); then
		return
	fi
	_cubefs_value "$before" "$beginning" && return
	if [[ $beginning == -* ]]; then
		_cubefs_words "$beginning" -f --foreground --config --state --9p --9p-token-file -o -h --help -V --version
		return
	fi
	_cubefs_directories "$beginning"
	if [[ $COMP_CWORD -eq 1 ]]; then
		local -a found=("${COMPREPLY[@]}")
		_cubefs_words "$beginning" umount upgrade doctor sh top
		COMPREPLY+=("${found[@]}")
	fi
}

complete -F _cubefs cubefs
