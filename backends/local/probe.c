/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can do: programs, kernel, groups. Each capability that is missing has its reason. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/agent/file.h"
#include "backends/local/criu.h"
#include "backends/local/find.h"
#include "backends/local/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROBE_DIR ".probe"

/* Covered during a launch, in its own namespace only: must be there, and crun not in it. */
static const char *const probe_stages[] = {"/run", "/mnt", "/tmp", "/srv", "/media"};

/* "crun version 1.8.1" */
static int probe_crun(struct cube_local *b, struct cube_err *err)
{
	const char *const argv[] = {b->crun, "--version", NULL};
	struct cube_buf text = CUBE_BUF(4096);
	int out[2], status = -1, rc;
	const char *at;
	char line[256] = "";

	if (!cube_local_find_program("crun", b->crun, sizeof(b->crun)))
		return cube_fail(err, -ENOENT, "crun is not installed: apt-get install crun");
	if (pipe2(out, 0) < 0)
		return cube_fail_errno(err, "cannot make a pipe");
	const struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = out[1], .timeout_ms = 10000};
	rc = cube_spawn_run(&s, NULL, &status, err);
	close(out[1]);
	if (rc == 0 && read(out[0], line, sizeof(line) - 1) < 0)
		rc = -errno;
	close(out[0]);
	cube_buf_done(&text);
	at = strstr(line, "version ");
	if (rc < 0 || status != 0 || !at)
		return cube_fail(err, -EIO, "%s --version gives no version: install crun anew", b->crun);
	at += strlen("version ");
	(void)snprintf(b->version, sizeof(b->version), "crun %.*s", (int)strcspn(at, "\n "), at);
	if (strtoul(at, NULL, 10) < 1)
		return cube_fail(err, -EOPNOTSUPP, "%.40s is too old: 1.0 or later is needed", b->version);
	return 0;
}

/* crun copies itself into a sealed file and executes that, each time, so that nobody inside can change it.
 * Given such a copy at once it has nothing to do: a seventh of the time of a launch. Not for an ordinary
 * user: there are systems where the right to make user namespaces hangs at the path of the program. */
static void probe_copy_crun(struct cube_local *b)
{
	cube_auto_fd from = open(b->crun, O_RDONLY | O_CLOEXEC);
	cube_auto_fd to = memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char magic[4] = "";

	(void)snprintf(b->crun_exec, sizeof(b->crun_exec), "%s", b->crun);
	if (!b->host->trusted || from < 0 || to < 0 || pread(from, magic, 4, 0) != 4 ||
	    memcmp(magic, "\177ELF", 4) != 0 || cube_agent_file_copy(from, to) < 0 ||
	    fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return;
	b->crun_copy = cube_steal_fd(&to);
	(void)snprintf(b->crun_exec, sizeof(b->crun_exec), "/proc/self/fd/%d", b->crun_copy);
}

static int probe_stage(struct cube_local *b, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(probe_stages); i++) {
		size_t n = strlen(probe_stages[i]);

		if (access(probe_stages[i], X_OK) == 0 &&
		    !(strncmp(b->crun, probe_stages[i], n) == 0 && b->crun[n] == '/')) {
			b->stage = probe_stages[i];
			return 0;
		}
	}
	return cube_fail(err, -ENOENT, "there is none of the directories /run, /mnt, /tmp");
}

static int probe_overlay(struct cube_local *b, struct cube_err *err)
{
	unsigned want = CUBE_OVERLAY_INDEX | CUBE_OVERLAY_XINO;
	cube_auto_fd dir = -1;
	int rc;

	want |= b->host->trusted ? CUBE_OVERLAY_REDIRECT : CUBE_OVERLAY_USERXATTR;
	rc = cube_file_mkdir(b->store.sets, PROBE_DIR, 0700, &dir);
	if (rc < 0)
		return cube_fail(err, rc, "cannot write to the store: %s", cube_errno_text(rc));
	rc = cube_local_overlay_probe(dir, want, err);
	(void)cube_file_remove_tree(b->store.sets, PROBE_DIR);
	if (rc < 0)
		return cube_fail_in(err, "the file system of the state directory cannot hold sandboxes");
	b->overlay_flags = (unsigned)rc;
	return 0;
}

/* Overlayfs takes a layer with other ids since Linux 5.19, and not from every file system. */
static void probe_host(struct cube_local *b)
{
	struct cube_err err = {0};
	cube_auto_fd dir = -1;

	if (b->host->slash < 0 || b->store.sets < 0 ||
	    cube_file_mkdir(b->store.sets, PROBE_DIR, 0700, &dir) < 0)
		return;
	if (cube_local_overlay_probe_over(dir, b->host->slash, CUBE_OVERLAY_XINO | CUBE_OVERLAY_REDIRECT,
					  &err) < 0) {
		(void)snprintf(b->host_why, sizeof(b->host_why), "%.150s; import a template instead",
			       err.text);
		cube_local_mask_free(b->mask);
		b->mask = NULL;
	}
	(void)cube_file_remove_tree(b->store.sets, PROBE_DIR);
}

/* What nothing works without. */
static int probe_all(struct cube_local *b, struct cube_err *err)
{
	int rc = probe_crun(b, err);

	if (rc == 0 && *b->host->why)
		rc = cube_fail(err, -EOPNOTSUPP, "%s", b->host->why);
	if (rc == 0 && b->host->agent < 0)
		rc = cube_fail(err, -ENOENT, "%s", b->host->agent_why);
	if (rc == 0 && *b->store_why)
		rc = cube_fail(err, -EOPNOTSUPP, "%s", b->store_why);
	if (rc == 0)
		rc = probe_stage(b, err);
	if (rc == 0)
		probe_copy_crun(b);
	if (rc == 0)
		rc = probe_overlay(b, err);
	return rc;
}

static void probe_lacks(struct cube_local *b, uint32_t cap, const char *why)
{
	b->base.caps &= ~cap;
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++)
		if (cap & (1u << i))
			(void)snprintf(b->base.missing[i], sizeof(b->base.missing[i]), "%.159s", why);
}

static void probe_kept(struct cube_local *b, uint32_t cap, const char *by)
{
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++)
		if (cap & (1u << i))
			b->base.kept_by[i] = by;
}

/* Processes can be limited and stopped without groups (enclose.h, standstill.h). */
static void probe_groups(struct cube_local *b)
{
	static const struct {
		enum cube_local_ctl ctl;
		uint32_t caps;
		const char *name;
	} needs[] = {
		{CUBE_CTL_MEMORY, CUBE_CAP_MEMORY, "memory"},
		{CUBE_CTL_CPU, CUBE_CAP_CPUS, "cpu"},
	};
	char why[160];

	probe_kept(b, CUBE_CAP_PIDS,
		   cube_local_cgroups_has(&b->cgroups, CUBE_CTL_PIDS) ? "a control group" : "RLIMIT_NPROC");
	for (size_t i = 0; i < CUBE_COUNT(needs); i++) {
		if (cube_local_cgroups_has(&b->cgroups, needs[i].ctl)) {
			probe_kept(b, needs[i].caps, "a control group");
			continue;
		}
		(void)snprintf(why, sizeof(why), "no control group with %s: %.120s", needs[i].name,
			       *b->cgroups.why ? b->cgroups.why
					       : "the kernel or the system's set-up lacks it");
		probe_lacks(b, needs[i].caps, why);
	}
}

void cube_local_probe(struct cube_local *b)
{
	struct cube_err err = {0};
	char why[160];

	b->base.caps = b->base.ops->caps;
	cube_local_net_open(&b->net, b->host->trusted);
	if (probe_all(b, &err) < 0) {
		probe_lacks(b, b->base.caps, err.text);
		return;
	}
	probe_host(b);
	probe_groups(b);
	cube_local_criu_why(b->crun, why, sizeof(why));
	probe_lacks(b, CUBE_CAP_CHECKPOINT_MEMORY, why);
	if (!b->net.kind)
		probe_lacks(b, CUBE_CAP_NET_OPEN, b->net.why);
	/* With one user inside, who is the one here, owners are right as they are. */
	if (!b->host->trusted && (b->host->ids.count > 1 || b->host->ids.uid != geteuid()))
		probe_lacks(b, CUBE_CAP_BIND,
			    "root inside is not this user here, and to show files with other owners (an "
			    "idmapped mount) needs root");
	if (*b->store.quota_why)
		probe_lacks(b, CUBE_CAP_DISK, b->store.quota_why);
	else
		probe_kept(b, CUBE_CAP_DISK, "a quota");
	if (b->host->ids.count == 1)
		probe_lacks(b, CUBE_CAP_USERS | CUBE_CAP_ACCOUNTS,
			    "this user has no subordinate ids: apt-get install uidmap, and a line in "
			    "/etc/subuid and "
			    "/etc/subgid");
}
