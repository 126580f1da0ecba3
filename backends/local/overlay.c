/* SPDX-License-Identifier: Apache-2.0 */
/* Overlay mounts made of directory descriptors.
 *
 * Overlayfs takes its layers by name, shows these names in mountinfo, and looks them up from the
 * working directory. So the thread steps into /proc/self/fd, where a name is the number of a
 * descriptor and is followed to what is open there, detached and idmapped mounts included. (Layers by
 * descriptor, Linux 6.13, would show the full path of each.) */
#include "backends/local/overlay.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OVERLAY_OPTION 256 /* bytes of an option with its NUL */

static const struct {
	unsigned flag;
	const char *key, *on;
} overlay_options[] = {
	{CUBE_OVERLAY_INDEX, "index", "on"},
	{CUBE_OVERLAY_XINO, "xino", "on"},
	{CUBE_OVERLAY_REDIRECT, "redirect_dir", "on"},
};

static int overlay_set(int fs, const char *key, const char *value)
{
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

/* In one string where it fits into what the kernel takes as an option; else one by one (6.8). */
static int overlay_set_lower(int fs, const struct cube_local_overlay *o)
{
	char names[CUBE_OVERLAY_LAYERS * 12], number[12];
	int used = 0, rc = 0;

	for (unsigned i = 0; i < o->n_lower; i++)
		used += snprintf(names + used, sizeof(names) - (size_t)used, "%s%d", i ? ":" : "",
				 o->lower[i]);
	if (used < OVERLAY_OPTION)
		return overlay_set(fs, "lowerdir", names);
	for (unsigned i = 0; rc == 0 && i < o->n_lower; i++) {
		(void)snprintf(number, sizeof(number), "%d", o->lower[i]);
		rc = overlay_set(fs, "lowerdir+", number);
	}
	return rc;
}

static int overlay_set_layers(int fs, const struct cube_local_overlay *o)
{
	char number[12];
	int rc = overlay_set_lower(fs, o);

	if (o->upper < 0)
		return rc;
	if (rc == 0) {
		(void)snprintf(number, sizeof(number), "%d", o->upper);
		rc = overlay_set(fs, "upperdir", number);
	}
	if (rc == 0) {
		(void)snprintf(number, sizeof(number), "%d", o->work);
		rc = overlay_set(fs, "workdir", number);
	}
	return rc;
}

static int overlay_set_options(int fs, unsigned flags)
{
	int rc = 0;

	if ((flags & CUBE_OVERLAY_USERXATTR) && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
		return -errno;
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(overlay_options); i++)
		if (flags & overlay_options[i].flag)
			rc = overlay_set(fs, overlay_options[i].key, overlay_options[i].on);
	return rc;
}

/* A context with everything set, created; the working directory is /proc/self/fd. */
static int overlay_create(int fs, const struct cube_local_overlay *o, struct cube_err *err)
{
	char why[160];
	int rc = overlay_set(fs, "source", o->source);

	if (rc == 0)
		rc = overlay_set_layers(fs, o);
	if (rc == 0)
		rc = overlay_set_options(fs, o->flags);
	if (rc == 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		rc = -errno;
	if (rc == 0)
		return 0;
	cube_local_mnt_log(fs, why, sizeof(why));
	return cube_fail(err, rc, "cannot mount the overlay of %s: %s%s%s", o->source, cube_errno_text(rc),
			 *why ? ": " : "", why);
}

/* The working directory belongs to all threads until one says that it wants its own. */
static int overlay_enter(int *ret_back)
{
	cube_auto_fd back = -1;

	if (unshare(CLONE_FS) < 0)
		return -errno;
	back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (back < 0 || chdir("/proc/self/fd") < 0)
		return -errno;
	*ret_back = cube_steal_fd(&back);
	return 0;
}

/* Takes @whole over. */
static int overlay_keep(const struct cube_local_overlay *o, int whole, const char *root, int *ret_fd,
			struct cube_err *err)
{
	int part = -1, rc = whole < 0 ? -errno : cube_local_keep(whole);

	if (rc < 0) {
		if (whole >= 0)
			close(whole);
		return cube_fail(err, rc, "cannot mount the overlay of %s: %s", o->source,
				 cube_errno_text(rc));
	}
	if (!*root) {
		*ret_fd = whole;
		return 0;
	}
	part = cube_local_mnt_clone(whole, root);
	rc = part < 0 ? part : cube_local_keep(part);
	cube_local_keep_end(whole);
	if (rc < 0) {
		if (part >= 0)
			close(part);
		return cube_fail(err, rc, "cannot clone the overlay of %s: %s", o->source,
				 cube_errno_text(rc));
	}
	*ret_fd = part;
	return 0;
}

int cube_local_overlay_mount(const struct cube_local_overlay *o, const char *root, int *ret_fd,
			     struct cube_err *err)
{
	cube_auto_fd fs = fsopen("overlay", FSOPEN_CLOEXEC);
	cube_auto_fd back = -1;
	int rc;

	if (fs < 0)
		return cube_fail(err, errno == ENODEV ? -EOPNOTSUPP : -errno,
				 "this kernel has no overlayfs: %s", cube_errno_text(errno));
	rc = overlay_enter(&back);
	if (rc < 0)
		return cube_fail(err, rc, "cannot enter /proc/self/fd: %s", cube_errno_text(rc));
	rc = overlay_create(fs, o, err);
	if (fchdir(back) < 0 && rc == 0)
		rc = cube_fail_errno(err, "cannot return to the working directory");
	if (rc < 0)
		return rc;
	return overlay_keep(o, fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID), root,
			    ret_fd, err);
}

static int probe_dirs(int dirfd, const char *const *names, int *fds, unsigned n)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = cube_file_mkdir(dirfd, names[i], 0755, &fds[i]);
	return rc;
}

/* One mount, in directories of its own each time: options leave marks in them. Over @lower, or (-1) a
 * directory there. */
static int probe_once(int dirfd, int lower, unsigned flags, struct cube_err *err)
{
	static const char *const names[] = {"lower", "upper", "work"};
	int fds[3] = {-1, -1, -1}, mount = -1;
	int rc = probe_dirs(dirfd, names, fds, 3);

	if (rc < 0) {
		(void)cube_fail(err, rc, "cannot make directories: %s", cube_errno_text(rc));
	} else {
		const struct cube_local_overlay o = {
			.source = "probe",
			.lower = {lower >= 0 ? lower : fds[0]},
			.n_lower = 1,
			.upper = fds[1],
			.work = fds[2],
			.flags = flags,
		};
		rc = cube_local_overlay_mount(&o, "", &mount, err);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	cube_local_keep_end(mount);
	for (unsigned i = 0; i < 3; i++)
		(void)cube_file_remove_tree(dirfd, names[i]);
	return rc;
}

int cube_local_overlay_probe_over(int dirfd, int lower, unsigned flags, struct cube_err *err)
{
	return probe_once(dirfd, lower, flags, err);
}

int cube_local_overlay_probe(int dirfd, unsigned want, struct cube_err *err)
{
	unsigned flags = want & CUBE_OVERLAY_USERXATTR;
	int rc = probe_once(dirfd, -1, flags, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < CUBE_COUNT(overlay_options); i++) {
		unsigned bit = overlay_options[i].flag;

		if ((want & bit) && probe_once(dirfd, -1, flags | bit, NULL) == 0)
			flags |= bit;
	}
	return (int)flags;
}
