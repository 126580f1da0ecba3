/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: lines in the files of /etc, a home. The files are a template's, which nobody vouches for. */
#include "backends/ns/account.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCOUNT_FILE_MAX ((size_t)1 << 20)
#define ACCOUNT_FIRST    1000u
#define ACCOUNT_LAST     60000u

int cube_ns_open(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* ---- one file of lines with colons ---- */

struct lines {
	int fd;
	struct cube_buf text;
};

static int lines_open(int root, const char *path, struct lines *l)
{
	char self[64];
	struct stat st;

	*l = (struct lines){.fd = cube_ns_open(root, path, O_RDWR | O_NONBLOCK)};
	cube_buf_init(&l->text, ACCOUNT_FILE_MAX);
	if (l->fd < 0)
		return -errno;
	if (fstat(l->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", l->fd);
	return cube_file_read(AT_FDCWD, self, &l->text);
}

static void lines_close(struct lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	cube_buf_done(&l->text);
}

/* Field @n of the line at @line: its length, its beginning in *ret. */
static size_t lines_field(const char *line, unsigned n, const char **ret)
{
	for (; n > 0 && line[strcspn(line, ":\n")] == ':'; n--)
		line += strcspn(line, ":\n") + 1;
	*ret = line;
	return n > 0 ? 0 : strcspn(line, ":\n");
}

static bool lines_number(const char *line, uint32_t *ret)
{
	char text[16];
	const char *at;
	size_t len = lines_field(line, 2, &at);
	uint64_t n;

	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, at, len);
	text[len] = '\0';
	if (cube_num_u64(text, UINT32_MAX, &n) < 0)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static const char *lines_next(const char *line)
{
	line += strcspn(line, "\n");
	return *line == '\n' ? line + 1 : line;
}

static const char *lines_name(const struct lines *l, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = cube_buf_str(&l->text); *at != '\0'; at = lines_next(at))
		if (strncmp(at, name, len) == 0 && at[len] == ':')
			return at;
	return NULL;
}

static bool lines_has(const struct lines *l, uint32_t id)
{
	uint32_t n;

	for (const char *at = cube_buf_str(&l->text); *at != '\0'; at = lines_next(at))
		if (lines_number(at, &n) && n == id)
			return true;
	return false;
}

static int lines_add(struct lines *l, const char *line)
{
	const char *text = cube_buf_str(&l->text);
	bool ended = l->text.len == 0 || text[l->text.len - 1] == '\n';
	struct cube_buf more = CUBE_BUF(512);
	ssize_t n;

	if (cube_buf_printf(&more, "%s%s\n", ended ? "" : "\n", line) < 0)
		return -ENOMEM;
	n = pwrite(l->fd, more.data, more.len, (off_t)l->text.len);
	n = n == (ssize_t)more.len ? 0 : n < 0 ? -errno : -EIO;
	cube_buf_done(&more);
	return (int)n;
}

/* ---- the account ---- */

struct account {
	const char *name;
	uint32_t uid;
	bool there;
};

static int account_choose(struct account *a, const struct lines *passwd, const struct lines *group,
			  struct cube_err *err)
{
	const char *line = lines_name(passwd, a->name);
	uint32_t id;

	if (line != NULL && lines_number(line, &id)) {
		if (a->uid != 0 && a->uid != id)
			return cube_fail(err, -EINVAL, "user=%s:%u: the template has it with the number %u",
					 a->name, a->uid, id);
		a->there = true;
		a->uid = id;
		return 0;
	}
	if (a->uid != 0 && lines_has(passwd, a->uid))
		return cube_fail(err, -EINVAL, "user=%s:%u: the template has another user of that number",
				 a->name, a->uid);
	for (id = ACCOUNT_FIRST; a->uid == 0 && id < ACCOUNT_LAST; id++)
		if (!lines_has(passwd, id) && !lines_has(group, id))
			a->uid = id;
	return a->uid != 0 ? 0 : cube_fail(err, -ENOSPC, "user=%s: no number is free", a->name);
}

static int account_write(const struct account *a, int root, struct lines *passwd, struct lines *group)
{
	cube_auto_fd bash = cube_ns_open(root, "usr/bin/bash", O_PATH);
	char line[256];
	int rc = 0;

	/* No password: a `x` would ask for a line in /etc/shadow. */
	if (lines_name(group, a->name) == NULL) {
		(void)snprintf(line, sizeof(line), "%s:*:%u:", a->name, a->uid);
		rc = lines_add(group, line);
	}
	(void)snprintf(line, sizeof(line), "%s:*:%u:%u::/home/%s:%s", a->name, a->uid, a->uid, a->name,
		       bash >= 0 ? "/bin/bash" : "/bin/sh");
	return rc == 0 ? lines_add(passwd, line) : rc;
}

static int account_home(const struct account *a, int root, const struct cube_ns_ids *ids)
{
	cube_auto_fd home = -1, own = -1;

	if (mkdirat(root, "home", 0755) == 0) {
		if (fchownat(root, "home", ids->uid, ids->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
		    fchmodat(root, "home", 0755, 0) < 0)
			return -errno;
	}
	home = cube_ns_open(root, "home", O_RDONLY | O_DIRECTORY);
	if (home < 0)
		return -errno;
	if (mkdirat(home, a->name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno; /* somebody's already: it stays his */
	own = cube_ns_open(home, a->name, O_RDONLY | O_DIRECTORY);
	if (own < 0 || fchown(own, ids->uid + a->uid, ids->gid + a->uid) < 0 || fchmod(own, 0755) < 0)
		return -errno;
	return 0;
}

static int account_make(struct account *a, int root, const struct cube_ns_ids *ids, struct cube_err *err)
{
	struct lines passwd = {.fd = -1}, group = {.fd = -1};
	int rc = lines_open(root, "etc/passwd", &passwd);

	if (rc == 0)
		rc = lines_open(root, "etc/group", &group);
	if (rc < 0)
		(void)cube_fail(err, rc, "user=%s: /etc/passwd and /etc/group of the template: %s", a->name,
				cube_errno_text(rc));
	else
		rc = account_choose(a, &passwd, &group, err);
	if (rc == 0 && !a->there) {
		rc = account_write(a, root, &passwd, &group);
		if (rc == 0)
			rc = account_home(a, root, ids);
		if (rc < 0)
			(void)cube_fail(err, rc, "user=%s: the account cannot be made: %s", a->name,
					cube_errno_text(rc));
	}
	lines_close(&passwd);
	lines_close(&group);
	return rc;
}

int cube_ns_account(int root, int workspace, const char *name, uint32_t uid, const struct cube_ns_ids *ids,
		    struct cube_err *err)
{
	struct account a = {.name = name, .uid = uid};
	int rc;

	if (strcmp(name, "root") == 0)
		return 0;
	rc = account_make(&a, root, ids, err);
	if (rc < 0)
		return rc;
	if (a.uid >= ids->count)
		return cube_fail(err, -EOPNOTSUPP, "user=%s: sandboxes have %u ids here, and it needs %u",
				 name, ids->count, a.uid);
	if (fchownat(workspace, "", ids->uid + a.uid, ids->gid + a.uid, AT_EMPTY_PATH) < 0)
		return cube_fail_errno(err, "user=%s: /workspace", name);
	return 0;
}
