/* SPDX-License-Identifier: Apache-2.0 */
/* What `cubefs doctor` says of this machine: one line a thing, with what to do where it is missing. */
#include "backends/local/local_priv.h"

#include "backends/base/macros.h"
#include "backends/local/find.h"
#include "backends/local/idrange.h"
#include "backends/local/overlay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DOCTOR_FREE_LEAST (UINT64_C(1) << 30)

struct doctor {
	const struct cube_local *b;
	void (*say)(void *ctx, bool ok, const char *what, const char *fix);
	void *ctx;
};

static void doctor_say(const struct doctor *d, bool ok, const char *what, const char *fix)
{
	d->say(d->ctx, ok, what, ok ? NULL : fix);
}

/* What nothing works without is one reason, the same for all capabilities. */
static void doctor_runs(const struct doctor *d)
{
	char what[128];

	if (!(d->b->base.caps & CUBE_CAP_EXEC)) {
		doctor_say(d, false, "sandboxes can run", d->b->base.missing[0]);
		return;
	}
	(void)snprintf(what, sizeof(what), "sandboxes can run (%s)", d->b->version);
	doctor_say(d, true, what, NULL);
}

static void doctor_agent(const struct doctor *d)
{
	doctor_say(d, d->b->host->agent >= 0, "cube-init, the agent, is there", d->b->host->agent_why);
}

static void doctor_overlay(const struct doctor *d)
{
	static const struct {
		unsigned flag;
		const char *what, *fix;
	} options[] = {
		{CUBE_OVERLAY_XINO, "inode numbers are unique (overlayfs xino)",
		 "use a state directory on ext4, xfs or btrfs"},
		{CUBE_OVERLAY_INDEX, "hard links of templates stay together (overlayfs index)",
		 "use a state directory on ext4, xfs or btrfs"},
	};

	for (size_t i = 0; i < CUBE_COUNT(options); i++)
		doctor_say(d, (d->b->overlay_flags & options[i].flag) != 0, options[i].what, options[i].fix);
}

static void doctor_host(const struct doctor *d)
{
	doctor_say(d, d->b->mask != NULL, "the template host can be used", d->b->host_why);
}

/* Where there is another way than a control group, its lack is no complaint. */
static void doctor_groups(const struct doctor *d)
{
	static const struct {
		uint32_t cap;
		const char *what;
	} limits[] = {
		{CUBE_CAP_MEMORY, "memory can be limited"},
		{CUBE_CAP_PIDS, "processes can be limited"},
		{CUBE_CAP_CPUS, "processors can be limited"},
		{CUBE_CAP_PAUSE, "sandboxes can be paused"},
	};

	for (size_t i = 0; i < CUBE_COUNT(limits); i++) {
		const char *why = "";

		for (unsigned n = 0; n < CUBE_CAP_COUNT; n++)
			if (limits[i].cap == 1u << n)
				why = d->b->base.missing[n];
		doctor_say(d, (d->b->base.caps & limits[i].cap) != 0, limits[i].what, why);
	}
	if (!cube_local_cgroups_has(&d->b->cgroups, CUBE_CTL_FREEZER))
		doctor_say(d, false, "pause is by the freezer, not by signals",
			   "systemd: loginctl enable-linger, and start cubefs by systemd-run --user --scope "
			   "-p Delegate=yes");
}

static void doctor_net(const struct doctor *d)
{
	char what[128];

	(void)snprintf(what, sizeof(what), "the network can be opened (net=open%s%s)",
		       d->b->net.kind ? " by " : "", d->b->net.kind ? strrchr(d->b->net.path, '/') + 1 : "");
	doctor_say(d, d->b->net.kind != NULL, what, d->b->net.why);
}

static void doctor_range(const struct doctor *d)
{
	uint32_t first = d->b->host->ids.uid;
	char who[128] = "", what[128], fix[240];
	bool taken = cube_local_idrange_taken("/etc", first, NULL, who);

	(void)snprintf(what, sizeof(what), "the ids of sandboxes (%u to %u) are nobody else's", first,
		       first + CUBE_LOCAL_IDS - 1);
	(void)snprintf(
		fix, sizeof(fix),
		"they overlap with %s: change that, or name another range with uid_base for a new state "
		"directory",
		who);
	doctor_say(d, !taken, what, fix);
}

static void doctor_ids(const struct doctor *d)
{
	char path[PATH_MAX];

	if (d->b->host->trusted) {
		doctor_range(d);
		return;
	}
	doctor_say(d, cube_local_find_program("newuidmap", path, sizeof(path)), "newuidmap is installed",
		   "apt-get install uidmap");
	doctor_say(d, d->b->host->ids.count > 1, "sandboxes have more than one user",
		   "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER (a range that is "
		   "free)");
}

static void doctor_store(const struct doctor *d)
{
	char what[320];

	(void)snprintf(what, sizeof(what),
		       "sandboxes and checkpoints can be kept (a new state directory has %s)",
		       d->b->store.what);
	doctor_say(d, !*d->b->store_why, *d->b->store_why ? "sandboxes and checkpoints can be kept" : what,
		   d->b->store_why);
}

static void doctor_disk(const struct doctor *d)
{
	struct statvfs fs;
	uint64_t left;
	char what[128];

	if (fstatvfs(d->b->state, &fs) < 0)
		return;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	(void)snprintf(what, sizeof(what), "the state directory's disk has room (%" PRIu64 " MiB)",
		       left >> 20);
	doctor_say(d, left >= DOCTOR_FREE_LEAST, what,
		   "make at least 1 GiB of room, or choose another --state");
}

void cube_local_doctor(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	const struct doctor d = {.b = cube_local_of(b), .say = say, .ctx = ctx};
	static const struct {
		void (*check)(const struct doctor *d);
		bool always; /* also where nothing can run */
	} checks[] = {
		{doctor_runs, true}, {doctor_agent, true}, {doctor_overlay, false},
		{doctor_host, true}, {doctor_net, true},   {doctor_groups, false},
		{doctor_ids, true},  {doctor_store, true}, {doctor_disk, true},
	};

	for (size_t i = 0; i < CUBE_COUNT(checks); i++)
		if (checks[i].always || (b->caps & CUBE_CAP_EXEC))
			checks[i].check(&d);
}
