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
		    const struct cube_ns_ids *ids)
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

static int seed_file(int etc, const char *name, const char *text, const struct cube_ns_ids *ids)
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

#define SEED_FILES 4

struct seed_text {
	const char *name;
	struct cube_buf text;
};

static void seed_done(struct seed_text files[SEED_FILES])
{
	for (size_t i = 0; i < SEED_FILES; i++)
		cube_buf_done(&files[i].text);
}

/* seed_done releases them, also after a failure. */
static int seed_texts(const struct cube_local_seed *s, struct seed_text out[SEED_FILES])
{
	int rc = 0;

	for (size_t i = 0; i < SEED_FILES; i++) {
		out[i].name = cube_local_seed_names[i];
		cube_buf_init(&out[i].text, SEED_HOSTS);
	}
	(void)cube_buf_printf(
		&out[0].text,
		"127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		s->hostname);
	for (size_t i = 0; i < s->n_hosts; i++)
		(void)cube_buf_printf(&out[0].text, "%s\t%s\n", s->hosts[i].value, s->hosts[i].key);
	(void)cube_buf_printf(&out[1].text, "%s\n", s->hostname);
	(void)cube_buf_printf(&out[2].text, "%.16s%.16s\n", s->id, s->id);
	(void)cube_buf_adds(&out[3].text, s->resolv);
	for (size_t i = 0; i < SEED_FILES; i++)
		rc = rc == 0 ? out[i].text.error : rc;
	return rc;
}

static int seed_files(int etc, const struct cube_local_seed *s)
{
	struct seed_text files[SEED_FILES];
	int rc = seed_texts(s, files);

	for (size_t i = 0; rc == 0 && i < SEED_FILES; i++)
		rc = seed_file(etc, files[i].name, cube_buf_str(&files[i].text), s->ids);
	seed_done(files);
	return rc;
}

static bool seed_is(int dir, const struct seed_text *file)
{
	cube_auto_fd fd = openat(dir, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[SEED_TEXT];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 07777) != 0644 ||
	    st.st_size >= SEED_TEXT)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	return file->text.len == 0 || strcmp(text, cube_buf_str(&file->text)) == 0;
}

bool cube_local_seed_wrote(int dir, const char *path, const char *name, const struct cube_local_seed *s)
{
	struct seed_text files[SEED_FILES];
	bool is = false;

	if (strncmp(path, "/etc/", 5) != 0 || strcmp(path + 5, name) != 0)
		return false;
	if (seed_texts(s, files) == 0)
		for (size_t i = 0; i < SEED_FILES; i++)
			is = is || (strcmp(files[i].name, name) == 0 && seed_is(dir, &files[i]));
	seed_done(files);
	return is;
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
