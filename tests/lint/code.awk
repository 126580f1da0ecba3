# SPDX-License-Identifier: Apache-2.0
# Prints FILE:LINE:CODE for each line of C, without comments and with string and character constants
# emptied (an #include keeps its name), so that a pattern meets code alone.
FNR == 1 { comment = 0 }

function strip(s,    out, c, two, quote)
{
	out = ""
	while (s != "") {
		c = substr(s, 1, 1)
		two = substr(s, 1, 2)
		if (comment) {
			if (two == "*/") {
				comment = 0
				s = substr(s, 3)
			} else {
				s = substr(s, 2)
			}
		} else if (two == "/*") {
			comment = 1
			s = substr(s, 3)
		} else if (two == "//") {
			return out
		} else if (c == "\"" || c == "'") {
			quote = c
			s = substr(s, 2)
			while (s != "" && substr(s, 1, 1) != quote)
				s = substr(s, substr(s, 1, 1) == "\\" ? 3 : 2)
			s = substr(s, 2)
			out = out quote quote
		} else {
			out = out c
			s = substr(s, 2)
		}
	}
	return out
}

!comment && /^[ \t]*#[ \t]*include/ { printf "%s:%d:%s\n", FILENAME, FNR, $0; next }
{ printf "%s:%d:%s\n", FILENAME, FNR, strip($0) }
