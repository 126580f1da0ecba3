#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads the objects of a build (symbols.sh BUILD_DIR) and checks the names that they export: all begin
# with cube_, and of a backend's folder the rest of the program refers to its table alone.
. "$(dirname "$0")/lib.sh"
lint_need nm binutils
build=${1:?build directory}

# Lines "FOLDER OBJECT TYPE NAME" of all objects of the libraries; FOLDER is the source's.
symbols() {
	local object folder
	find "$build/CMakeFiles" -path '*/cubefs_*.dir/*' -name '*.o' | while IFS= read -r object; do
		folder=${object#*/cubefs_*.dir/}
		folder=${folder%/*}
		nm -g --format=posix "$object" | awk -v folder="$folder" -v object="${object##*/}" '
			$1 !~ /^(__|_GLOBAL_)/ { print folder, object, $2, $1 }'
	done
}

list=$(symbols)
[ -n "$list" ] || lint_skip "no library is built in $build"
lint_report < <(printf '%s\n' "$list" | awk '
	function kind(folder) {
		return folder ~ /^backends\/[^\/]+$/ && folder !~ /^backends\/(base|agent|decor|ns)$/
	}
	$3 != "U" && $3 != "w" && $4 !~ /^cube_/ && !kind($1) {
		print $1 "/" $2 ":1: exports " $4 ", which does not begin with cube_"
	}
	$3 != "U" && $3 != "w" {
		home[$4] = $1
	}
	$3 == "U" {
		uses[++n] = $0
	}
	END {
		for (i = 1; i <= n; i++) {
			split(uses[i], u, " ")
			h = home[u[4]]
			if (kind(h) && u[1] != h && !(u[1] == "backends" && u[4] ~ /^cube_backend_/))
				print u[1] "/" u[2] ":1: uses " u[4] ", which is private to " h
		}
	}')
lint_end
