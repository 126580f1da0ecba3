/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a new sandbox. */
#include "backends/local/seed.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEED_TEXT 1024

static int seed_dir(int root, const char *name, const struct cube_local_ids *ids)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	long fd = syscall(SYS_openat2, root, name, &how, sizeof(how));

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(root, name, 0755) < 0 || fchownat(root, name, ids->uid, ids->gid, 0) < 0)
			return -errno;
		fd = syscall(SYS_openat2, root, name, &how, sizeof(how));
	}
	return fd < 0 ? -errno : (int)fd;
}

/* In place of what the template has there, a link into /run for instance. */
static int seed_file(int etc, const char *name, const char *text, const struct cube_local_ids *ids)
{
	cube_auto_fd fd = -1;
	int rc;

	if (unlinkat(etc, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(etc, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = cube_file_write_all(fd, text, strlen(text));
	if (rc == 0 && (fchown(fd, ids->uid, ids->gid) < 0 || fchmod(fd, 0644) < 0))
		rc = -errno;
	return rc;
}

int cube_local_seed(int root, const struct cube_local_seed *s, struct cube_err *err)
{
	char hosts[SEED_TEXT], hostname[SEED_TEXT], machine[SEED_TEXT];
	const struct {
		const char *name, *text;
	} files[] = {
		{"hosts", hosts},
		{"hostname", hostname},
		{"machine-id", machine},
		{"resolv.conf", s->resolv},
	};
	cube_auto_fd etc = seed_dir(root, "etc", s->ids);
	int rc = etc < 0 ? etc : 0;

	(void)snprintf(hosts, sizeof(hosts),
		       "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		       s->hostname);
	(void)snprintf(hostname, sizeof(hostname), "%s\n", s->hostname);
	(void)snprintf(machine, sizeof(machine), "%.16s%.16s\n", s->id, s->id);
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(files); i++)
		rc = seed_file(etc, files[i].name, files[i].text, s->ids);
	return rc < 0 ? cube_fail(err, rc, "cannot write /etc of sandbox %s: %s", s->id, cube_errno_text(rc))
		      : 0;
}
