# SPDX-License-Identifier: Apache-2.0
# A Debian package: `cpack -G DEB` in a build directory (the release preset's). What it depends on is found in the
# binaries; what they run is named here, as in cmake/debian.sh.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cubefs)
set(CPACK_PACKAGE_VENDOR cubefs)
set(CPACK_PACKAGE_CONTACT "cubefs maintainers <maintainers@cubefs.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
"cubefs mounts a file system in which every directory is a sandbox for code
that nobody trusts: mkdir makes one, echo runs a command in it, cat reads the
result, cp moves files in and out, rmdir ends it. For root and for ordinary
users; nothing to download, no server.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
	OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "crun, fuse3, uidmap, iproute2")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "passt, btrfs-progs")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion")
include(CPack)
