# SPDX-License-Identifier: Apache-2.0
# Input: ban.table (part=table), then FILE:LINE:CODE (part=code). Output: findings. A call is a name in
# front of a parenthesis that is neither a member (p->free) nor part of a longer name. Needs glob.awk.

part == "table" {
	n = split($0, field, /\t+/)
	if ($0 !~ /^#/ && n == 3) {
		allowed[field[1]] = field[2]
		instead[field[1]] = field[3]
	}
	next
}
{
	match($0, /^[^:]+:[0-9]+:/)
	place = substr($0, 1, RLENGTH)
	code = substr($0, RLENGTH + 1)
	file = place
	sub(/:.*/, "", file)
	while (match(code, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
		before = RSTART > 1 ? substr(code, RSTART - 1, 1) : ""
		name = substr(code, RSTART, RLENGTH - 1)
		code = substr(code, RSTART + RLENGTH)
		sub(/[ \t]+$/, "", name)
		if (!(name in allowed) || before == "." || before == ">")
			continue
		if (!any(file, allowed[name]))
			print place " " name " is banned here, use " instead[name] " (tests/lint/ban.table)"
	}
}
