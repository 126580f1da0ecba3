/* SPDX-License-Identifier: Apache-2.0 */
/* Another host name for a sandbox: in its kernel namespace, in its files, in its record. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/ns/account.h"
#include "backends/ns/hostname.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rename_running(const struct local_cube *c, const char *name, struct cube_err *err)
{
	cube_auto_fd proc = cube_local_cube_proc(c, err);
	int rc = proc < 0 ? proc : cube_ns_hostname(proc, name);

	if (proc >= 0 && rc < 0)
		return cube_fail(err, -EIO, "sandbox %s: its host name cannot be set from here: %s", c->id,
				 cube_errno_text(rc));
	return rc;
}

/* ---- its files ---- */

/* What the inside may have put there in the place of our file is left alone: a link, a device, a giant. */
static int rename_open(int root, const char *path)
{
	int fd = cube_ns_open(root, path, O_RDWR | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)CUBE_NS_FILE_MAX) {
		close(fd);
		return -1;
	}
	return fd;
}

static int rename_in_hosts(int root, const char *old, const char *name)
{
	cube_auto_fd fd = rename_open(root, "etc/hosts");

	return fd < 0 ? 0 : cube_ns_hosts_rename(fd, old, name);
}

static int rename_in_hostname(int root, const char *name)
{
	cube_auto_fd fd = rename_open(root, "etc/hostname");

	return fd < 0 ? 0 : cube_ns_line(fd, name);
}

static int rename_in_machine_id(int root, const char *id)
{
	cube_auto_fd fd = rename_open(root, "etc/machine-id");
	char text[2 * CUBE_ID_MAX];

	(void)snprintf(text, sizeof(text), CUBE_NS_MACHINE_ID, id, id);
	return fd < 0 ? 0 : cube_ns_line(fd, text);
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
