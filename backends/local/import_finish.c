/* SPDX-License-Identifier: Apache-2.0 */
/* What every template needs: directories to mount on, and a shell. */
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	mode_t mode;
	bool mounted; /* must be a directory, whatever the template has there */
} finish_dirs[] = {
	{"dev", 0755, true},   {"proc", 0555, true},  {"sys", 0555, true},       {"workspace", 0755, true},
	{"etc", 0755, false},  {"home", 0755, false}, {"root", 0700, false},     {"run", 0755, false},
	{"tmp", 01777, false}, {"var", 0755, false},  {"var/tmp", 01777, false},
};

/* Makes it where nothing is; a link or a file where something will be mounted gives way. */
static int finish_dir(const struct cube_local_import *im, size_t n)
{
	const char *name = finish_dirs[n].name;
	struct stat st;

	if (fstatat(im->root, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode) || !finish_dirs[n].mounted)
			return 0;
		if (unlinkat(im->root, name, 0) < 0)
			return -errno;
	}
	if (mkdirat(im->root, name, 0700) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0
							   : -errno; /* var is a link or a file: its matter */
	if (fchmodat(im->root, name, finish_dirs[n].mode, 0) < 0 ||
	    fchownat(im->root, name, im->ids->uid, im->ids->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static unsigned finish_machine(void)
{
	Elf64_Ehdr own = {.e_machine = EM_NONE};
	cube_auto_fd fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, &own, sizeof(own), 0) != (ssize_t)sizeof(own))
		return EM_NONE;
	return own.e_machine;
}

/* /bin/sh as it would be found inside: an absolute link begins at the template's root. */
static const char *finish_shell(int root)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT};
	cube_auto_fd fd = (int)syscall(SYS_openat2, root, "bin/sh", &how, sizeof(how));
	Elf64_Ehdr elf = {.e_machine = EM_NONE};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IXOTH))
		return "it has no /bin/sh that everyone may run";
	if (pread(fd, &elf, sizeof(elf), 0) != (ssize_t)sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return "its /bin/sh is no program of this kind of system";
	return elf.e_machine == finish_machine() ? "" : "its programs are for another kind of processor";
}

int cube_local_import_finish(struct cube_local_import *im, char *reason, size_t size, struct cube_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(finish_dirs); i++) {
		rc = finish_dir(im, i);
		if (rc < 0)
			return cube_fail(err, rc, "cannot make /%s in the template: %s", finish_dirs[i].name,
					 cube_errno_text(rc));
	}
	(void)snprintf(reason, size, "%s", finish_shell(im->root));
	return 0;
}
