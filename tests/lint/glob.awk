# SPDX-License-Identifier: Apache-2.0
# Path patterns as the tables have them: a star does not cross a slash, two do.
function glob(pattern)
{
	gsub(/[.+]/, "\\\\&", pattern)
	gsub(/\*\*/, "\001", pattern)
	gsub(/\*/, "[^/]*", pattern)
	gsub(/\001/, ".*", pattern)
	return "^" pattern "$"
}

# Does one of the patterns (separated by blanks) fit the path?
function any(path, patterns,    n, i, list)
{
	n = split(patterns, list, " ")
	for (i = 1; i <= n; i++)
		if (path ~ glob(list[i]))
			return 1
	return 0
}
