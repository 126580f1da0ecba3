# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target carries the language, the warnings and the sanitizers of everything.
set(CUBEFS_SANITIZE "" CACHE STRING "sanitizers, as in -fsanitize= (address,undefined | thread)")
option(CUBEFS_FUZZ "build the fuzz targets with libFuzzer (clang)" OFF)
option(CUBEFS_COVERAGE "instrument for coverage" OFF)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # the cleanup attribute, statement expressions

add_library(cubefs_flags INTERFACE)
target_compile_definitions(cubefs_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64
	FUSE_USE_VERSION=314)
target_compile_options(cubefs_flags INTERFACE
	-Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
	-Wundef -Wformat=2 -Wwrite-strings -Wcast-qual -Wno-gnu-zero-variadic-macro-arguments
	-fno-common -fstack-protector-strong)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
	target_compile_options(cubefs_flags INTERFACE -Wno-variadic-macros)
	# -Wpedantic of gcc refuses statement expressions even behind __extension__ in macros of macros
endif()
if(CUBEFS_SANITIZE)
	target_compile_options(cubefs_flags INTERFACE -fsanitize=${CUBEFS_SANITIZE}
		-fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_link_options(cubefs_flags INTERFACE -fsanitize=${CUBEFS_SANITIZE})
else()
	target_compile_options(cubefs_flags INTERFACE
		$<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
	target_link_options(cubefs_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()
if(CUBEFS_FUZZ)
	target_compile_options(cubefs_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(CUBEFS_COVERAGE)
	target_compile_options(cubefs_flags INTERFACE --coverage)
	target_link_options(cubefs_flags INTERFACE --coverage)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
