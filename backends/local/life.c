/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, end, stop and start, pause and limits of a sandbox. */
#include "backends/local/local_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/ns/account.h"
#include "backends/local/checkpoint.h"
#include "backends/local/owner.h"
#include "backends/local/standstill.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* ---- create ---- */

static int create_check(const struct cube_local *b, const struct cube_spec *spec, struct cube_err *err)
{
	if (spec->limits.disk && *b->store.quota_why)
		return cube_fail(err, -EOPNOTSUPP, "%s", b->store.quota_why);
	if (!(b->base.caps & CUBE_CAP_EXEC))
		return cube_fail(err, -EOPNOTSUPP, "%s", b->base.missing[0]);
	if (spec->net == CUBE_NET_OPEN && !(b->base.caps & CUBE_CAP_NET_OPEN))
		return cube_fail(err, -EOPNOTSUPP, "net=open: %s", b->net.why);
	return 0;
}

static int create_record(struct cube_local *b, const struct cube_spec *spec, struct cube_local_record *r,
			 struct cube_err *err)
{
	const char *template = spec->template ? spec->template : b->base.template;
	const struct cube_limits *defaults = &b->base.defaults;
	struct cube_local_checkpoint from;
	int rc = spec->from ? cube_local_checkpoint_read(b, spec->from, false, &from, err) : 0;

	if (rc < 0)
		return rc;
	if (spec->from)
		template = from.template;
	*r = (struct cube_local_record){.stage = CUBE_STAGE_STARTING,
					.net = spec->net,
					.generation = 1,
					.created_wall = cube_clock_wall()};
	(void)cube_local_boot_id(r->boot);
	if ((size_t)snprintf(r->template, sizeof(r->template), "%s", template) >= sizeof(r->template))
		return cube_fail(err, -ENOENT, "no template %.64s...", template);
	(void)snprintf(r->hostname, sizeof(r->hostname), "%.64s", spec->name);
	r->limits.memory = spec->limits.memory ? spec->limits.memory : defaults->memory;
	r->limits.pids = spec->limits.pids ? spec->limits.pids : defaults->pids;
	r->limits.cpus_milli = spec->limits.cpus_milli ? spec->limits.cpus_milli : defaults->cpus_milli;
	r->limits.disk = spec->limits.disk;
	rc = cube_local_mounts_set(r, spec, err);
	return rc == 0 ? cube_local_template_check_run(b, r->template, err) : rc;
}

struct cube_local_seed cube_local_seed_of(const struct cube_local *b, const struct local_cube *c)
{
	return (struct cube_local_seed){
		.id = c->id,
		.hostname = c->rec.hostname,
		.resolv = c->rec.net == CUBE_NET_OPEN ? cube_local_net_resolv(&b->net)
						      : "# no network (net=none)\n",
		.ids = &b->host->ids,
	};
}

int cube_local_cube_mount_fresh(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	const struct cube_local_seed seed = cube_local_seed_of(b, c);

	return cube_local_cube_mount(b, c, &seed, err);
}

static int create_fresh(struct cube_local *b, struct local_cube *c, const struct cube_spec *spec,
			struct cube_err *err)
{
	struct cube_local_seed seed = cube_local_seed_of(b, c);
	int rc = cube_local_set_make(&b->store, c->id, &b->host->ids, err);

	seed.hosts = spec->hosts;
	seed.n_hosts = spec->n_hosts;
	return rc == 0 ? cube_local_cube_mount(b, c, &seed, err) : rc;
}

static int create_files(struct cube_local *b, struct local_cube *c, const struct cube_spec *spec,
			struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = spec->from ? cube_local_create_from(b, c, spec->from, cancel, err)
			    : create_fresh(b, c, spec, err);

	if (rc == 0 && spec->user != NULL)
		rc = cube_ns_account(c->root, c->workspace, spec->user, spec->user_uid, &b->host->ids, err);
	return rc;
}

/* A sandbox that is full starts too. */
static int run_launch(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	int rc = cube_local_cube_quota(b, c, false, err);

	if (rc == 0)
		rc = cube_local_launch(b, c, cancel, err);
	if (rc == 0)
		return cube_local_cube_quota(b, c, true, err);
	(void)cube_local_cube_quota(b, c, true, NULL);
	return rc;
}

/* Group, process 1, network. On failure nothing of it is left but the files. */
static int cube_run(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
		    struct cube_err *err)
{
	pid_t helper = 0;
	int rc;

	rc = cube_local_group_make(&b->cgroups, c->id, &b->host->ids, err);
	if (rc == 0)
		rc = cube_local_group_limit(&b->cgroups, c->id, &c->rec.limits, err);
	if (rc == 0)
		rc = run_launch(b, c, cancel, err);
	if (rc == 0 && c->rec.net == CUBE_NET_OPEN) {
		rc = cube_local_net_start(&b->net, c->rec.init.pid, &b->cgroups, c->id, cancel, &helper, err);
		if (rc == 0) {
			c->rec.net_helper = (struct cube_local_proc){.pid = helper,
								     .start = cube_local_proc_start(helper)};
			rc = cube_local_cube_save(c, err);
		}
	}
	if (rc < 0)
		(void)cube_local_cube_end(b, c, NULL);
	return rc;
}

/* Its files and what is known of it. Nothing runs. */
static int cube_remove(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	char id[CUBE_ID_MAX + 1], from[CUBE_ID_MAX + 1];
	int rc;

	(void)snprintf(id, sizeof(id), "%s", c->id);
	(void)snprintf(from, sizeof(from), "%s", c->rec.base);
	cube_local_cube_drop(b, c);
	rc = cube_local_set_remove(&b->store, id, err);
	if (rc < 0)
		return rc;
	rc = cube_file_remove_tree(b->cubes, id);
	if (rc == 0)
		cube_local_checkpoint_release(b, from);
	return rc < 0 ? cube_fail(err, rc, "cannot remove what is noted of %s: %s", id, cube_errno_text(rc))
		      : 0;
}

/* An earlier attempt whose answer was lost: a whole sandbox is the answer, half of one is removed. */
static int create_again(struct cube_local *b, const char *uid, bool *ret_done, struct cube_err *err)
{
	struct local_cube *c;
	int rc = cube_local_cube_get(b, uid, &c, NULL);

	*ret_done = false;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return cube_fail(err, rc, "sandbox %s: %s", uid, cube_errno_text(rc));
	if (!c->damaged && c->rec.stage != CUBE_STAGE_STARTING) {
		*ret_done = true;
		return 0;
	}
	rc = cube_local_cube_end(b, c, err);
	return rc == 0 ? cube_remove(b, c, err) : rc;
}

static int create_new(struct cube_local *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_local_record rec;
	struct local_cube *c = NULL;
	int rc = create_record(b, spec, &rec, err);

	if (rc == 0)
		rc = cube_local_template_wait(b, rec.template, cancel, err);
	if (rc == 0)
		rc = cube_local_cube_new(b, spec->uid, &rec, &c, err);
	if (rc != 0)
		return rc;
	rc = cube_local_labels_write(c->dir, spec, err);
	if (rc == 0)
		rc = create_files(b, c, spec, cancel, err);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc == 0)
		rc = cube_run(b, c, cancel, err);
	if (rc < 0)
		(void)cube_remove(b, c, NULL);
	return rc;
}

int cube_local_create(struct cube_backend *base, const struct cube_spec *spec, struct cube_cancel *cancel,
		      char **ret_id, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	cube_auto_str id = cube_strdup(spec->uid);
	bool done = false;
	int rc = id ? create_check(b, spec, err) : cube_fail(err, -ENOMEM, "out of memory");

	if (rc == 0)
		rc = create_again(b, spec->uid, &done, err);
	if (rc == 0 && !done)
		rc = create_new(b, spec, cancel, err);
	if (rc == 0)
		*ret_id = cube_steal(id);
	return rc;
}

int cube_local_destroy(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, NULL);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return cube_fail(err, rc, "sandbox %s: %s", id, cube_errno_text(rc));
	rc = cube_local_cube_end(b, c, err);
	return rc == 0 ? cube_remove(b, c, err) : rc;
}

/* ---- stop, start ---- */

int cube_local_cube_sound(struct cube_local *b, const char *id, struct local_cube **ret, struct cube_err *err)
{
	int rc = cube_local_cube_get(b, id, ret, err);

	if (rc == 0 && (*ret)->damaged)
		rc = cube_fail(err, -EIO, "the record of sandbox %s is damaged: it can only be destroyed",
			       id);
	if (rc == 0)
		rc = cube_local_cube_reap(b, *ret, err);
	if (rc == 0)
		cube_local_checkpoint_thaw(b, *ret);
	return rc;
}

int cube_local_start(struct cube_backend *base, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err);

	return rc < 0 || cube_local_cube_runs(c) ? rc : cube_local_cube_start(b, c, cancel, err);
}

int cube_local_cube_start(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
			  struct cube_err *err)
{
	int rc;

	if (!(b->base.caps & CUBE_CAP_EXEC))
		return cube_fail(err, -EOPNOTSUPP, "%s", b->base.missing[0]);
	rc = cube_local_template_wait(b, c->rec.template, cancel, err);
	if (rc == 0)
		rc = cube_local_cube_mount(b, c, NULL, err);
	if (rc < 0)
		return rc;
	rc = cube_run(b, c, cancel, err);
	if (rc < 0) {
		c->rec.stage = CUBE_STAGE_STOPPED;
		(void)cube_local_cube_save(c, NULL);
	}
	return rc;
}

/* By the freezer, or where there is none by signals. */
int cube_local_cube_freeze(const struct cube_local *b, struct local_cube *c, bool on,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = 0;

	if (cube_local_cgroups_has(&b->cgroups, CUBE_CTL_FREEZER))
		return cube_local_group_freeze(&b->cgroups, c->id, on, cancel, err);
	if (!on)
		cube_local_standstill_end(c->rec.init.pid, c->dir);
	else
		rc = cube_local_standstill(c->rec.init.pid, c->dir, cancel, err);
	if (rc < 0)
		return rc;
	c->rec.still = on;
	return cube_local_cube_save(c, err);
}

#define STOP_MAX_S     86400
#define STOP_KILLED_MS 3000 /* the agent takes at most two seconds */

/* TERM to process 1, which passes it on to all others and ends when they have; frozen ones first go on. A second one, and
 * it kills them and notes their ends. */
static int stop_gently(const struct cube_local *b, struct local_cube *c, uint32_t grace_s,
		       struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd fd = pidfd_open(c->rec.init.pid, 0);
	struct pollfd wait[] = {{.fd = fd, .events = POLLIN},
				{.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	int r;

	if (fd < 0 || grace_s == 0)
		return 0;
	(void)cube_local_cube_freeze(b, c, false, NULL, NULL);
	(void)pidfd_send_signal(fd, SIGTERM, NULL, 0);
	r = poll(wait, 2, grace_s < STOP_MAX_S ? (int)grace_s * 1000 : STOP_MAX_S * 1000);
	if (r == 0) {
		(void)pidfd_send_signal(fd, SIGTERM, NULL, 0);
		r = poll(wait, 2, STOP_KILLED_MS);
	}
	if (r > 0 && wait[0].revents == 0)
		return cube_fail(err, -EINTR, "interrupted");
	return 0;
}

int cube_local_stop(struct cube_backend *base, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		    struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc < 0 || c->rec.stage == CUBE_STAGE_STOPPED)
		return rc;
	rc = stop_gently(b, c, grace_s, cancel, err);
	if (rc == 0)
		rc = cube_local_cube_end(b, c, err);
	if (rc < 0)
		return rc;
	c->rec.stage = CUBE_STAGE_STOPPED;
	(void)snprintf(c->rec.reason, sizeof(c->rec.reason), "stopped");
	return cube_local_cube_save(c, err);
}

/* ---- pause, limits ---- */

static int set_frozen(struct cube_backend *base, const char *id, bool on, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc < 0)
		return rc;
	if (!cube_local_cube_runs(c))
		return cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	return cube_local_cube_freeze(b, c, on, cancel, err);
}

int cube_local_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return set_frozen(b, id, true, cancel, err);
}

int cube_local_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	return set_frozen(b, id, false, cancel, err);
}

int cube_local_limit(struct cube_backend *base, const char *id, const struct cube_limits *limits,
		     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_limits *own;
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err);

	if (rc == 0 && cube_local_cube_runs(c) && limits->pids &&
	    !cube_local_cgroups_has(&b->cgroups, CUBE_CTL_PIDS))
		rc = cube_fail(err, -EBUSY,
			       "without a control group the limit on processes can be changed while it is "
			       "stopped only");
	if (rc == 0 && cube_local_cube_runs(c))
		rc = cube_local_group_limit(&b->cgroups, c->id, limits, err);
	if (rc == 0 && limits->disk)
		rc = cube_local_set_limit(&b->store, c->id, limits->disk, err);
	if (rc < 0)
		return rc;
	own = &c->rec.limits;
	own->disk = limits->disk ? limits->disk : own->disk;
	own->memory = limits->memory ? limits->memory : own->memory;
	own->pids = limits->pids ? limits->pids : own->pids;
	own->cpus_milli = limits->cpus_milli ? limits->cpus_milli : own->cpus_milli;
	return cube_local_cube_save(c, err);
}
