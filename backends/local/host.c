/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces and mounts that all local sandboxes share. */
#include "backends/local/host.h"

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "backends/agent/file.h"
#include "backends/local/hidden.h"
#include "backends/local/idrange.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"
#include "backends/local/record.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HOST_AGENT_SIZE "64m" /* as much as the file needs is used */

static struct cube_local_host host = {.agent = -1, .slash = -1};
static bool host_ready;
static bool host_entered; /* by the program before this one */

const struct cube_local_host *cube_local_host(void)
{
	return host_ready ? &host : NULL;
}

/* ---- namespaces ---- */

/* An ordinary user: the namespace of the sandboxes that still run, since only from there their files can be
 * touched and their processes signalled; else a new one. */
static int host_enter_user(const char *state_dir, struct cube_err *err)
{
	pid_t init = cube_local_record_any_running(state_dir);
	int rc = init > 0 ? cube_local_ids_join(init, err) : -ESRCH;

	if (rc == -ESRCH)
		rc = cube_local_ids_enter(err);
	return rc;
}

void cube_local_host_entered(bool user)
{
	host_entered = geteuid() == 0; /* else it could not, and we shall find out why */
	host.swap_owner = user;
}

static int host_enter(const char *state_dir, struct cube_err *err)
{
	int rc = 0;

	host.trusted = geteuid() == 0 && cube_local_ids_initial();
	if (host_entered)
		return 0;
	if (geteuid() != 0) {
		rc = host_enter_user(state_dir, err);
		host.swap_owner = true;
	} else if (unshare(CLONE_NEWNS) < 0) {
		rc = cube_fail_errno(err, "cannot make a mount namespace");
	}
	if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		rc = cube_fail_errno(err, "cannot separate the mounts of this process");
	return rc;
}

/* ---- ids ---- */

static int host_choose_ids(const char *state_dir, const struct cube_conf_section *conf, struct cube_err *err)
{
	const char *text = cube_conf_get(conf, "uid_base");
	uint32_t first = 0;
	uint64_t base;
	int rc;

	if (!host.trusted) {
		cube_local_ids_of_map(&host.ids);
		return 0;
	}
	if (!text) {
		rc = cube_local_idrange(state_dir, "/etc", &first, err);
		if (rc < 0)
			return rc;
	} else if (cube_num_u64(text, UINT32_MAX - CUBE_LOCAL_IDS, &base) < 0 || base < 1000) {
		return cube_fail(err, -EINVAL,
				 "uid_base = %s: a number from 1000 on is wanted, of %u free ids", text,
				 CUBE_LOCAL_IDS);
	} else {
		first = (uint32_t)base;
	}
	host.ids = (struct cube_ns_ids){.uid = first, .gid = first, .count = CUBE_LOCAL_IDS};
	return 0;
}

/* ---- cube-init ---- */

/* A copy on a tmpfs of our own: its path shows nothing of this machine, nobody can write to it, and an
 * upgrade does not change it under those who run. */
static void host_take_agent(void)
{
	cube_auto_fd from = -1, to = -1, dir = -1;
	struct cube_err err = {0};
	int rc;

	from = cube_agent_file_open(&err);
	if (from >= 0)
		dir = cube_local_mnt_tmpfs(HOST_AGENT_SIZE, &err);
	if (from < 0 || dir < 0) {
		(void)snprintf(host.agent_why, sizeof(host.agent_why), "%.199s", err.text);
		return;
	}
	to = openat(dir, CUBE_LOCAL_AGENT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	rc = to < 0 ? -errno : cube_agent_file_copy(from, to);
	if (rc == 0 && fchmod(to, 0555) < 0)
		rc = -errno;
	if (to >= 0)
		close(cube_steal_fd(&to)); /* who writes to it keeps it from being read only, and from exec */
	if (rc == 0)
		rc = cube_local_mnt_set(dir, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, -1);
	if (rc == 0)
		rc = cube_local_keep(dir);
	if (rc < 0)
		(void)snprintf(host.agent_why, sizeof(host.agent_why), "cannot copy cube-init: %s",
			       cube_errno_text(rc));
	else
		host.agent = cube_steal_fd(&dir);
}

/* ---- this machine's files ---- */

static bool host_same_mount(const char *a, const char *b)
{
	struct statx sa, sb;

	return statx(AT_FDCWD, a, 0, STATX_MNT_ID, &sa) == 0 &&
	       statx(AT_FDCWD, b, 0, STATX_MNT_ID, &sb) == 0 && sa.stx_mnt_id == sb.stx_mnt_id;
}

static void host_take_slash(void)
{
	cube_auto_fd slash = cube_local_mnt_clone(AT_FDCWD, "/");
	cube_auto_fd userns = -1;
	struct cube_err err = {0};
	int rc;

	if (!host_same_mount("/", "/usr")) {
		(void)snprintf(host.slash_why, sizeof(host.slash_why),
			       "/usr is a file system of its own here; import a template instead");
		return;
	}
	rc = slash < 0 ? slash : cube_ns_userns(&host.ids, &userns, &err);
	if (rc == 0)
		rc = cube_local_mnt_set(slash, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID,
					userns);
	if (rc == 0)
		rc = cube_local_keep(slash);
	if (rc == 0)
		host.slash = cube_steal_fd(&slash);
	else if (err.code)
		(void)snprintf(host.slash_why, sizeof(host.slash_why), "%.199s", err.text);
	else
		(void)snprintf(host.slash_why, sizeof(host.slash_why),
			       "the file system of / cannot be mounted with other ids (%s); import a "
			       "template instead",
			       cube_errno_text(rc));
}

static bool host_is_hybrid(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup/unified", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Each sandbox is a user namespace. */
static void host_try_userns(void)
{
	cube_auto_fd userns = -1;
	struct cube_err err = {0};

	if (cube_ns_userns(&host.ids, &userns, &err) < 0)
		(void)snprintf(host.why, sizeof(host.why), "%.199s", err.text);
}

int cube_local_host_prepare(const char *state_dir, const struct cube_conf_section *conf, struct cube_err *err)
{
	struct cube_err why = {0};
	int rc;

	if (host_ready)
		return 0;
	if (host_enter(state_dir, &why) < 0 || cube_local_keep_setup(state_dir, &why) < 0)
		(void)snprintf(host.why, sizeof(host.why), "%.199s", why.text);
	rc = host_choose_ids(state_dir, conf, err);
	if (rc < 0)
		return rc;
	if (!*host.why)
		host_try_userns();
	host.hybrid = host_is_hybrid();
	host_take_agent();
	if (host.trusted && !*host.why)
		host_take_slash();
	if (host.slash >= 0)
		cube_local_hidden_start();
	host_ready = true;
	return 0;
}
