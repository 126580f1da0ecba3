# SPDX-License-Identifier: Apache-2.0
# cmake -D MANUAL=cubefs-backend.7 -D OUT=example.c -P example.cmake: takes the example out of the manual.
file(READ ${MANUAL} text)
set(from "is what tests/conformance/example.cmake compiles.\n.Bd -literal\n")
string(FIND "${text}" "${from}" start)
if(start EQUAL -1)
	message(FATAL_ERROR "${MANUAL} has no example")
endif()
string(LENGTH "${from}" length)
math(EXPR start "${start} + ${length}")
string(SUBSTRING "${text}" ${start} -1 text)
string(FIND "${text}" "\n.Ed\n" end)
math(EXPR end "${end} + 1")
string(SUBSTRING "${text}" 0 ${end} text)
string(REPLACE "\\e" "\\" text "${text}") # as a backslash is written in mdoc
file(WRITE ${OUT} "${text}")
