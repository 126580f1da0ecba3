# SPDX-License-Identifier: Apache-2.0
# Reads what `ctest --output-junit` wrote. Prints "PASSED FAILED SKIPPED", and adds to the file `list` a line
# "SUITE <tab> NAME <tab> REASON" for each skipped test, whose reason is the line of its output that
# begins with "skip: ". What did not run and was not skipped by its own word counts as failed.
function attribute(line, key,    value)
{
	value = line
	if (!sub(".* " key "=\"", "", value))
		return ""
	sub(/".*/, "", value)
	return value
}

function plain(text)
{
	gsub(/&lt;/, "<", text)
	gsub(/&gt;/, ">", text)
	gsub(/&quot;/, "\"", text)
	gsub(/&apos;/, "'", text)
	gsub(/&amp;/, "\\&", text)
	return text
}

/<testcase / {
	name = attribute($0, "name")
	status = attribute($0, "status")
	skipped = 0
	reason = "no reason given"
}
/<skipped message="SKIP_RETURN_CODE/ { skipped = 1 }
match($0, /skip: .*/) {
	reason = substr($0, RSTART + 6)
	sub(/<\/system-out>.*/, "", reason)
}
/<\/testcase>/ {
	if (status == "run") {
		passed++
	} else if (skipped) {
		skips++
		printf "%s\t%s\t%s\n", suite, plain(name), plain(reason) >>list
	} else if (status != "disabled") {
		failed++
	}
}
END { print passed + 0, failed + 0, skips + 0 }
