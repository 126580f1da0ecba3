# SPDX-License-Identifier: Apache-2.0
# A text file as an array of bytes: cubefs_text(FILE SYMBOL) gives generated/SYMBOL.h with
# `static const unsigned char SYMBOL[]`. (A string literal of that length is beyond what C promises.)
function(cubefs_text file symbol)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
	file(READ ${PROJECT_SOURCE_DIR}/${file} hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1,\n" bytes "${hex}")
	file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/${symbol}.h
		CONTENT "static const unsigned char ${symbol}[] = {\n${bytes}\n};\n")
endfunction()
