# SPDX-License-Identifier: Apache-2.0
# Run by cpack on what was installed for the package: what Debian has otherwise than `cmake --install`. Pages are
# compressed, the licence is a `copyright`, and there is a changelog.
set(top ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
set(doc ${top}/doc/cubefs)

function(package_gzip file)
	execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
	file(CHMOD ${file}.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

file(GLOB pages ${top}/man/man*/*.[1-9])
foreach(page IN LISTS pages)
	package_gzip(${page})
endforeach()

file(REMOVE ${doc}/LICENSE)
file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: cubefs

Files: *
Copyright: 2026 the cubefs authors
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog
"cubefs (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What is new is in NEWS.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
package_gzip(${doc}/changelog)
file(CHMOD ${doc}/copyright PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

# It runs in sandboxes, whatever libraries those have.
file(WRITE ${top}/lintian/overrides/cubefs
	"cubefs: statically-linked-binary [usr/libexec/cubefs/cube-init]\n")
file(CHMOD ${top}/lintian/overrides/cubefs PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
