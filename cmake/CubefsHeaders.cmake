# SPDX-License-Identifier: Apache-2.0
# The target header_check compiles every header alone, and twice in one file: a header that needs another
# one first, or has no guard, does not compile. It is part of every build.
function(cubefs_header_check)
	cmake_parse_arguments(H "" "" "FOLDERS;WITHOUT;LIBRARIES" ${ARGN})
	set(sources "")
	foreach(folder IN LISTS H_FOLDERS)
		file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
			${PROJECT_SOURCE_DIR}/${folder}/*.h)
		foreach(header IN LISTS headers)
			string(REGEX REPLACE "[/.]" "_" name ${header})
			set(source ${CMAKE_CURRENT_BINARY_DIR}/header_check/${name}.c)
			file(CONFIGURE OUTPUT ${source} CONTENT
				"#include \"${header}\"\n#include \"${header}\"\n\nextern int header_check_${name};\n")
			list(APPEND sources ${source})
		endforeach()
	endforeach()
	foreach(folder IN LISTS H_WITHOUT)
		string(REGEX REPLACE "[/.]" "_" name ${folder})
		list(FILTER sources EXCLUDE REGEX "/header_check/${name}_")
	endforeach()
	if(NOT sources)
		return()
	endif()
	add_library(header_check OBJECT ${sources})
	target_include_directories(header_check PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
	target_link_libraries(header_check PRIVATE ${H_LIBRARIES} cubefs_flags)
endfunction()
