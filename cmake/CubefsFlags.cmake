# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target, cubefs_flags, carries the language, the warnings, the hardening and the
# sanitizers of everything that is compiled here. Which of them: CMakePresets.json.
set(CUBEFS_SANITIZE "" CACHE STRING "sanitizers, as in -fsanitize= (address,undefined | thread)")
option(CUBEFS_WERROR "treat warnings as errors" ON)
option(CUBEFS_FUZZ "build the fuzz targets with libFuzzer (clang)" OFF)
option(CUBEFS_COVERAGE "instrument for coverage" OFF)
option(CUBEFS_DEEP_LINT "let the lint tests run clang-tidy and cppcheck too" OFF)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # the cleanup attribute, statement expressions
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

add_library(cubefs_flags INTERFACE)
target_compile_definitions(cubefs_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64
	FUSE_USE_VERSION=314 CUBEFS_VERSION="${PROJECT_VERSION}")

# Both compilers know these. Statement expressions stand behind __extension__, which is what
# -Wpedantic of both wants to see.
target_compile_options(cubefs_flags INTERFACE
	-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
	-Wformat=2 -Wwrite-strings -Wcast-qual -fno-common -fstack-protector-strong)
if(CUBEFS_WERROR)
	target_compile_options(cubefs_flags INTERFACE -Werror)
endif()

if(CUBEFS_SANITIZE)
	target_compile_options(cubefs_flags INTERFACE -fsanitize=${CUBEFS_SANITIZE}
		-fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_link_options(cubefs_flags INTERFACE -fsanitize=${CUBEFS_SANITIZE})
else()
	# Fortifying needs an optimising build, and hides from the sanitizers what they look for.
	target_compile_options(cubefs_flags INTERFACE
		$<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>
		$<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
	target_link_options(cubefs_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()

if(CUBEFS_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
		message(FATAL_ERROR "CUBEFS_FUZZ needs clang: use the fuzz preset")
	endif()
	# On every library: without it the fuzzer sees nothing of the code behind its target.
	target_compile_options(cubefs_flags INTERFACE -fsanitize=fuzzer-no-link)
	target_link_options(cubefs_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(CUBEFS_COVERAGE)
	target_compile_options(cubefs_flags INTERFACE --coverage)
	target_link_options(cubefs_flags INTERFACE --coverage)
	add_custom_target(coverage
		COMMAND gcovr --root ${PROJECT_SOURCE_DIR} --filter backends/ --filter ctl/ --filter fs/
			--sort-uncovered ${PROJECT_BINARY_DIR}
		COMMENT "needs gcovr, and a run of ctest before"
		WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()
