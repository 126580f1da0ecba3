/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a new sandbox. */
#include "backends/local/seed.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEED_TEXT  1024
#define SEED_HOSTS ((size_t)2 << 20)
#define SEED_ETC   CUBE_LOCAL_ROOT_DIR "/etc"

const char *const cube_local_seed_names[] = {"hosts", "hostname", "machine-id", "resolv.conf", NULL};

/* A directory that will be merged with the one below shows the upper one's owner and mode. */
static int seed_dir(int upper, const int *lower, unsigned n_lower, const char *path,
		    const struct cube_local_ids *ids)
{
	struct stat st = {.st_mode = S_IFDIR | 0755, .st_uid = ids->uid, .st_gid = ids->gid};
	bool found = false;

	for (unsigned i = 0; !found && i < n_lower; i++) {
		found = fstatat(lower[i], path, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (!found && errno != ENOENT)
			return -errno;
	}
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (mkdirat(upper, path, 0700) < 0 ||
	    fchownat(upper, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(upper, path, st.st_mode & 07777, 0) < 0)
		return -errno;
	return 0;
}

static int seed_file(int etc, const char *name, const char *text, const struct cube_local_ids *ids)
{
	cube_auto_fd fd = openat(etc, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int rc;

	if (fd < 0)
		return -errno;
	rc = cube_file_write_all(fd, text, strlen(text));
	if (rc == 0 && (fchown(fd, ids->uid, ids->gid) < 0 || fchmod(fd, 0644) < 0))
		rc = -errno;
	return rc;
}

static int seed_files(int etc, const struct cube_local_seed *s)
{
	struct cube_buf hosts = CUBE_BUF(SEED_HOSTS);
	char hostname[SEED_TEXT], machine[SEED_TEXT];
	struct {
		const char *name, *text;
	} files[] = {
		{cube_local_seed_names[0], NULL},
		{cube_local_seed_names[1], hostname},
		{cube_local_seed_names[2], machine},
		{cube_local_seed_names[3], s->resolv},
	};
	int rc = 0;

	(void)cube_buf_printf(
		&hosts, "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		s->hostname);
	for (size_t i = 0; i < s->n_hosts; i++)
		(void)cube_buf_printf(&hosts, "%s\t%s\n", s->hosts[i].value, s->hosts[i].key);
	files[0].text = cube_buf_str(&hosts);
	rc = hosts.error;
	(void)snprintf(hostname, sizeof(hostname), "%s\n", s->hostname);
	(void)snprintf(machine, sizeof(machine), "%.16s%.16s\n", s->id, s->id);
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(files); i++)
		rc = seed_file(etc, files[i].name, files[i].text, s->ids);
	cube_buf_done(&hosts);
	return rc;
}

int cube_local_seed(int upper, const int *lower, unsigned n_lower, const struct cube_local_seed *s,
		    struct cube_err *err)
{
	cube_auto_fd etc = -1;
	int rc = seed_dir(upper, lower, n_lower, CUBE_LOCAL_ROOT_DIR, s->ids);

	if (rc == 0)
		rc = seed_dir(upper, lower, n_lower, SEED_ETC, s->ids);
	if (rc == -ENOTDIR)
		return 0;
	if (rc == 0) {
		etc = openat(upper, SEED_ETC, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = etc < 0 ? -errno : seed_files(etc, s);
	}
	return rc < 0 ? cube_fail(err, rc, "cannot write /etc of sandbox %s: %s", s->id, cube_errno_text(rc))
		      : 0;
}
