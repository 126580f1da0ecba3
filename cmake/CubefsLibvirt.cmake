# SPDX-License-Identifier: Apache-2.0
# The backend libvirt is built where its libraries are, or where it is asked for. Sets its folder and library, or the folder
# whose headers are not looked at.
set(CUBEFS_LIBVIRT AUTO CACHE STRING "build the backend libvirt: ON, OFF, AUTO (where its libraries are)")
pkg_check_modules(LIBVIRT IMPORTED_TARGET libvirt>=9 libxml-2.0)
if(CUBEFS_LIBVIRT STREQUAL "AUTO")
	set(CUBEFS_LIBVIRT_USED ${LIBVIRT_FOUND})
else()
	set(CUBEFS_LIBVIRT_USED ${CUBEFS_LIBVIRT})
endif()
if(CUBEFS_LIBVIRT_USED AND NOT LIBVIRT_FOUND)
	message(FATAL_ERROR "CUBEFS_LIBVIRT: libvirt-dev and libxml2-dev are not installed")
endif()
if(CUBEFS_LIBVIRT_USED)
	set(CUBEFS_LIBVIRT_FOLDER backends/libvirt)
	set(CUBEFS_LIBVIRT_LIBRARY PkgConfig::LIBVIRT)
else()
	set(CUBEFS_LIBVIRT_WITHOUT backends/libvirt)
endif()
