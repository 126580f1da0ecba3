/* SPDX-License-Identifier: Apache-2.0 */
/* Another host name for a sandbox: in its kernel namespace, in its files, in its record. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/ns/account.h"
#include "backends/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RENAME_FILE_MAX (256u << 10) /* bytes of a file that is still taken for ours */

/* ---- the running ones ---- */

/* In a child of one thread: only such may enter a user namespace. System calls only. */
static _Noreturn void rename_child(int user, int uts, const char *name, size_t len)
{
	/* Root is above all user namespaces and may be refused its own by nothing; an ordinary user's daemon is
	 * above those of its sandboxes too. Where that is so, the name can be set from where we are. */
	if (!cube_child_enter(uts, CLONE_NEWUTS) &&
	    (!cube_child_enter(user, CLONE_NEWUSER) || !cube_child_enter(uts, CLONE_NEWUTS)))
		cube_child_exit(1);
	cube_child_exit(syscall(SYS_sethostname, name, len) == 0 ? 0 : 2);
}

static int rename_ns(pid_t init, const char *which)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)init, which);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int rename_running(const struct local_cube *c, const char *name, struct cube_err *err)
{
	cube_auto_fd user = rename_ns(c->rec.init.pid, "user");
	cube_auto_fd uts = rename_ns(c->rec.init.pid, "uts");
	int status = 0;
	pid_t pid;

	if (user < 0 || uts < 0)
		return cube_fail(err, -EIO, "sandbox %s: its namespaces cannot be reached", c->id);
	pid = cube_child(0);
	if (pid == 0)
		rename_child(user, uts, name, strlen(name));
	if (pid < 0)
		return cube_fail_errno(err, "sandbox %s: its host name", c->id);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cube_fail_errno(err, "sandbox %s: its host name", c->id);
	if (status != 0)
		return cube_fail(err, -EIO, "sandbox %s: its host name cannot be set from here", c->id);
	return 0;
}

/* ---- its files ---- */

/* What the inside may have put there in the place of our file is left alone: a link, a device, a giant. */
static int rename_open(int root, const char *path)
{
	int fd = cube_ns_open(root, path, O_RDWR | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)RENAME_FILE_MAX) {
		close(fd);
		return -1;
	}
	return fd;
}

/* @text with the word @old of each line that has it as its second as @name. */
static int rename_hosts(const char *text, const char *old, const char *name, struct cube_buf *out)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n"), address = strcspn(text, " \t\n");
		size_t gap = address + strspn(text + address, " \t"), word = strcspn(text + gap, " \t\n");

		if (gap > address && word == strlen(old) && strncmp(text + gap, old, word) == 0) {
			(void)cube_buf_add(out, text, gap);
			(void)cube_buf_adds(out, name);
			(void)cube_buf_add(out, text + gap + word, len - gap - word);
		} else {
			(void)cube_buf_add(out, text, len);
		}
		text += len;
		if (*text == '\n') {
			(void)cube_buf_addc(out, '\n');
			text++;
		}
	}
	return out->error;
}

static int rename_write(int fd, const struct cube_buf *text)
{
	if (pwrite(fd, text->data, text->len, 0) != (ssize_t)text->len)
		return -EIO;
	return ftruncate(fd, (off_t)text->len) < 0 ? -errno : 0;
}

static int rename_in_hosts(int root, const char *old, const char *name)
{
	cube_auto_fd fd = rename_open(root, "etc/hosts");
	struct cube_buf text = CUBE_BUF(RENAME_FILE_MAX + 1), fresh = CUBE_BUF(2 * RENAME_FILE_MAX);
	char path[64];
	int r;

	if (fd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = cube_file_read(AT_FDCWD, path, &text);
	if (r == 0)
		r = rename_hosts(cube_buf_str(&text), old, name, &fresh);
	if (r == 0 && fresh.len > 0)
		r = rename_write(fd, &fresh);
	cube_buf_done(&text);
	cube_buf_done(&fresh);
	return r;
}

static int rename_in_hostname(int root, const char *name)
{
	cube_auto_fd fd = rename_open(root, "etc/hostname");
	struct cube_buf text = CUBE_BUF(CUBE_ID_MAX + 2);
	int r;

	if (fd < 0)
		return 0;
	r = cube_buf_printf(&text, "%s\n", name) < 0 ? -ENOMEM : rename_write(fd, &text);
	cube_buf_done(&text);
	return r;
}

static int rename_in_machine_id(int root, const char *id)
{
	cube_auto_fd fd = rename_open(root, "etc/machine-id");
	struct cube_buf text = CUBE_BUF(2 * CUBE_ID_MAX);
	int r;

	if (fd < 0)
		return 0;
	r = cube_buf_printf(&text, "%.16s%.16s\n", id, id) < 0 ? -ENOMEM : rename_write(fd, &text);
	cube_buf_done(&text);
	return r;
}

int cube_local_identity(const struct local_cube *c, const char *old, const char *name, struct cube_err *err)
{
	int r = rename_in_hostname(c->root, name);

	if (r == 0)
		r = rename_in_hosts(c->root, old, name);
	if (r == 0)
		r = rename_in_machine_id(c->root, c->id);
	return r < 0 ? cube_fail(err, r, "sandbox %s: its name in /etc: %s", c->id, cube_errno_text(r)) : 0;
}

static int rename_files(struct cube_local *b, struct local_cube *c, const char *name, struct cube_err *err)
{
	int r = cube_local_cube_mount(b, c, NULL, err);

	if (r == 0) /* a full one has a name too */
		r = cube_local_cube_quota(b, c, false, err);
	if (r < 0)
		return r;
	r = cube_local_identity(c, c->rec.hostname, name, err);
	return r == 0 ? cube_local_cube_quota(b, c, true, err) : (cube_local_cube_quota(b, c, true, NULL), r);
}

int cube_local_rename(struct cube_backend *base, const char *id, const char *name, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int r = cube_local_cube_get(b, id, &c, err);

	if (r == 0 && c->damaged)
		r = cube_fail(err, -EIO, "sandbox %s: its record is damaged", id);
	if (r == 0 && cube_local_cube_runs(c))
		r = rename_running(c, name, err);
	if (r == 0)
		r = rename_files(b, c, name, err);
	if (r < 0)
		return r;
	(void)snprintf(c->rec.hostname, sizeof(c->rec.hostname), "%.64s", name);
	return cube_local_cube_save(c, err);
}
