# SPDX-License-Identifier: Apache-2.0
# Input: layers.table, libraries.table, then the files' names one a line, then FILE:LINE:CODE. The
# variable `part` (set between the file arguments) says which. Output: findings. Needs glob.awk.

function folder(path)
{
	sub(/\/[^\/]*$/, "", path)
	return path
}

# The line of layers.table for a file; the special stands behind the general, so the last that
# fits counts.
function rule(file,    i, found)
{
	for (i = 1; i <= n_rules; i++)
		if (file ~ glob(rule_files[i]))
			found = i
	return found
}

function check_own(file, line, header,    r)
{
	if (!(header in known)) {
		# Texts that the build makes are in none of our folders.
		if (header !~ /^cube_[a-z_]*_text\.h$/)
			print file ":" line ": \"" header "\" is not a path from the project's root"
		return
	}
	if (header ~ /_priv\.h$/ && file !~ /^tests\// && index(folder(file) "/", folder(header) "/") != 1) {
		print file ":" line ": " header " is private to " folder(header)
		return
	}
	r = rule(file)
	if (r && folder(file) != folder(header) && !any(header, rule_allowed[r]))
		print file ":" line ": " folder(file) " may not include " header " (tests/lint/layers.table)"
}

function check_library(file, line, header,    i)
{
	for (i = 1; i <= n_libraries; i++)
		if (header ~ glob(library_headers[i]) && !any(file, library_files[i]))
			print file ":" line ": <" header "> may be included only in " library_files[i]
}

part != "code" && (/^#/ || NF == 0) { next }
part == "layers" {
	rule_files[++n_rules] = $1
	$1 = ""
	rule_allowed[n_rules] = $0
	next
}
part == "libraries" {
	library_headers[++n_libraries] = $1
	$1 = ""
	sub(/^ /, "")
	library_files[n_libraries] = $0
	next
}
part == "names" {
	known[$0] = 1
	if (!rule($0))
		print $0 ":1: its folder is not in tests/lint/layers.table"
	next
}
match($0, /^[^:]+:[0-9]+:[ \t]*#[ \t]*include[ \t]+["<][^">]+[">]/) {
	split($0, place, ":")
	header = substr($0, 1, RLENGTH - 1)
	kind = header ~ /<[^<]*$/ ? "<" : "\""
	sub(/^[^"<]*["<]/, "", header)
	if (kind == "<")
		check_library(place[1], place[2], header)
	else
		check_own(place[1], place[2], header)
}
