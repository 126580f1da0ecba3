/* SPDX-License-Identifier: Apache-2.0 */
/* The domain: the lock at the door, what is deferred past it, the sandboxes by name, opening and closing. */
#include "ctl/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/follow.h"
#include "ctl/stock_priv.h"
#include "ctl/ports/door.h"
#include "ctl/transfer.h"
#include "ctl/volume_priv.h"

void cube_domain_enter(struct cube_domain *d)
{
	pthread_mutex_lock(&d->lock);
}

void cube_domain_leave(struct cube_domain *d)
{
	struct cube_deferred *x = d->deferred;

	d->deferred = NULL;
	d->deferred_tail = &d->deferred;
	pthread_mutex_unlock(&d->lock);
	while (x != NULL) {
		struct cube_deferred *next = x->next; /* fn may free x */

		x->fn(x);
		x = next;
	}
}

void cube_domain_defer(struct cube_domain *d, struct cube_deferred *x)
{
	x->next = NULL;
	*d->deferred_tail = x;
	d->deferred_tail = &x->next;
}

void cube_task_submit(struct cube_domain *d, struct cube_work *w)
{
	cube_domain_own(d)->works++;
	cube_pool_submit(d->pool, w);
}

void cube_task_end(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);

	if (--own->works == 0)
		pthread_cond_broadcast(&own->quiet);
}

struct cube_cube *cube_domain_find(struct cube_domain *d, const char *name)
{
	return cube_map_get(d->by_name, name);
}

struct cube_cube *cube_domain_next(struct cube_domain *d, uint64_t seq)
{
	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (c->seq > seq)
			return c;
	}
	return NULL;
}

struct cube_cube *cube_domain_after(struct cube_domain *d, const struct cube_cube *c)
{
	return c->link.next == &d->cubes ? NULL : cube_list_entry(c->link.next, struct cube_cube, link);
}

struct cube_service *cube_domain_service(struct cube_domain *d, const char *name)
{
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		if (strcmp(s->backend->name, name) == 0)
			return s;
	}
	return NULL;
}

/* ---- Opening ---- */

static void domain_free(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);

	cube_pool_free(d->pool);
	cube_volumes_close(d);
	cube_services_close(d);
	cube_alarms_close(own->alarms);
	cube_events_close(d->events);
	cube_errlog_free(d->errors);
	cube_buf_done(&d->done);
	cube_map_free(d->by_name);
	cube_close_auto(&d->state_fd);
	cube_close_auto(&own->cubes_fd);
	cube_close_auto(&own->templates_fd);
	cube_close_auto(&own->volumes_fd);
	cube_free(d->state_dir);
	pthread_cond_destroy(&own->quiet);
	pthread_mutex_destroy(&d->lock);
	cube_free(own);
}

/* So that the waiting in a shutdown is not moved by someone who sets the clock. */
static void domain_init_lock(struct cube_domain_own *own)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&own->d.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&own->quiet, &attr);
	pthread_condattr_destroy(&attr);
}

static void domain_usage_due(struct cube_alarm *a);
static void domain_sync_due(struct cube_alarm *a);
static void domain_guard_due(struct cube_alarm *a);

static struct cube_domain *domain_new(const struct cube_domain_options *o)
{
	struct cube_domain_own *own = cube_calloc(1, sizeof(*own));
	struct cube_domain *d;

	if (own == NULL)
		return NULL;
	d = &own->d;
	domain_init_lock(own);
	d->state_fd = own->cubes_fd = own->templates_fd = own->volumes_fd = -1;
	d->deferred_tail = &d->deferred;
	d->loop = o->loop;
	d->conf = o->conf;
	d->uid = o->uid;
	d->canary = o->canary;
	d->gid = o->gid;
	d->started_wall = cube_clock_wall();
	d->next_seq = 1;
	cube_list_init(&d->services);
	cube_list_init(&d->cubes);
	cube_list_init(&own->dying);
	cube_list_init(&d->volumes);
	cube_list_init(&own->volumes_dying);
	cube_list_init(&own->conns);
	cube_list_init(&own->port_conns);
	cube_list_init(&own->doors_resting);
	cube_waitq_init(&d->changed);
	cube_buf_init(&d->done, CUBE_DONE_MAX);
	cube_alarm_init(&own->usage, domain_usage_due);
	cube_alarm_init(&own->metrics, cube_metrics_due);
	cube_alarm_init(&own->sync, domain_sync_due);
	cube_alarm_init(&own->guard, domain_guard_due);
	cube_list_init(&own->unsynced);
	cube_ring_set_init(&own->logs, CUBE_LOGS_OPEN);
	d->state_dir = cube_strdup(o->state_dir);
	d->by_name = cube_map_new();
	d->errors = cube_errlog_new();
	d->pool = cube_pool_new(CUBE_POOL_THREADS);
	own->alarms = cube_alarms_open(d);
	if (d->state_dir == NULL || d->by_name == NULL || d->errors == NULL || d->pool == NULL ||
	    own->alarms == NULL) {
		domain_free(d);
		return NULL;
	}
	return d;
}

static int domain_open_dirs(struct cube_domain *d, struct cube_err *err)
{
	struct cube_domain_own *own = cube_domain_own(d);

	d->state_fd = open(d->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->state_fd < 0)
		return cube_fail_errno(err, "state directory '%s'", d->state_dir);
	int r = cube_file_mkdir(d->state_fd, "cubes", 0700, &own->cubes_fd);
	if (r == 0)
		r = cube_file_mkdir(d->state_fd, "templates", 0700, &own->templates_fd);
	if (r == 0)
		r = cube_file_mkdir(d->state_fd, "volumes", 0700, &own->volumes_fd);
	if (r < 0)
		return cube_fail(err, r, "state directory '%s': %s", d->state_dir, cube_errno_text(r));
	return 0;
}

static int domain_fill(struct cube_domain *d, struct cube_err *err)
{
	int r = domain_open_dirs(d, err);

	if (r == 0)
		r = cube_settings_load(d, err);
	if (r == 0)
		r = cube_events_open(d->state_fd, &d->events, err);
	if (r == 0)
		r = cube_services_open(d, err);
	if (r == 0)
		r = cube_volumes_load(d, err);
	if (r == 0)
		r = cube_load_all(d, err);
	return r;
}

int cube_domain_open(const struct cube_domain_options *o, struct cube_domain **ret, struct cube_err *err)
{
	struct cube_domain *d = domain_new(o);

	if (d == NULL)
		return cube_fail(err, -ENOMEM, "the daemon: out of memory");
	int r = domain_fill(d, err);
	if (r < 0) {
		cube_domain_close(d);
		return r;
	}
	*ret = d;
	return 0;
}

int cube_domain_start(struct cube_domain *d, struct cube_err *err)
{
	int r = 0;

	cube_domain_enter(d);
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		r = cube_service_refresh(d, s, NULL, err);
		if (r == 0)
			r = cube_follow_begin(s, err);
		if (r < 0)
			break;
	}
	if (r == 0) {
		cube_list_each (i, &d->cubes)
			cube_cube_adopt(cube_list_entry(i, struct cube_cube, link));
		cube_list_each (i, &cube_domain_own(d)->dying)
			cube_cube_adopt(cube_list_entry(i, struct cube_cube, link));
		cube_stocks_each(d, cube_cube_adopt);
		cube_stocks_kick(d);
		cube_builds_recover(d);
		cube_volumes_start(d);
		cube_checkpoints_compare(d);
	}
	cube_domain_leave(d);
	return r;
}

/* ---- Behind ---- */

static void domain_sync_due(struct cube_alarm *a)
{
	cube_state_sync_now(&cube_container_of(a, struct cube_domain_own, sync)->d);
}

static void domain_guard_due(struct cube_alarm *a)
{
	cube_guard_look(&cube_container_of(a, struct cube_domain_own, guard)->d);
}

static void domain_usage_due(struct cube_alarm *a)
{
	struct cube_domain_own *own = cube_container_of(a, struct cube_domain_own, usage);

	if (cube_usage_round(&own->d))
		cube_alarm_set(&own->d, a, CUBE_USAGE_MS);
}

/* ---- Closing ---- */

static void domain_wake_all(struct cube_domain *d)
{
	static const struct cube_err ending = {.code = -EHOSTDOWN, .text = "the daemon is ending"};

	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		cube_op_leave_all(c, &ending);
		cube_ports_close(c, false);
		cube_wake(&c->changed);
		cube_wake(&c->job_added);
		cube_wake(&c->metrics.added);
		cube_list_each (k, &c->sessions)
			cube_wake(&cube_list_entry(k, struct cube_session, link)->changed);
		cube_list_each (k, &c->jobs)
			cube_wake(&cube_list_entry(k, struct cube_job, link)->changed);
	}
	cube_list_each (i, &cube_domain_own(d)->dying)
		cube_wake(&cube_list_entry(i, struct cube_cube, link)->changed);
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		cube_list_each (k, &s->templates)
			cube_wake(&cube_list_entry(k, struct cube_template_entry, link)->changed);
		cube_list_each (k, &s->stocks)
			cube_wake(&cube_list_entry(k, struct cube_stock, link)->changed);
	}
	cube_list_each (i, &d->volumes)
		cube_wake(&cube_list_entry(i, struct cube_volume_entry, link)->changed);
	cube_wake(&d->changed);
}

/* Waits until nothing is at the backends, at most until @deadline (monotonic, ns). */
static bool domain_wait_quiet(struct cube_domain_own *own, uint64_t deadline)
{
	struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
				 .tv_nsec = (long)(deadline % 1000000000)};

	while (own->works > 0)
		if (pthread_cond_timedwait(&own->quiet, &own->d.lock, &until) == ETIMEDOUT)
			return false;
	return true;
}

static void domain_cancel_cube(struct cube_cube *c)
{
	cube_op_cancel(c);
	cube_transfers_cancel(c);
}

static void domain_cancel_all(struct cube_domain *d)
{
	cube_stocks_each(d, cube_op_cancel);
	cube_list_each (i, &d->cubes)
		domain_cancel_cube(cube_list_entry(i, struct cube_cube, link));
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		cube_follow_cancel(s);
		cube_service_cancel(s);
		cube_list_each (k, &s->templates) {
			struct cube_template_entry *t = cube_list_entry(k, struct cube_template_entry, link);

			if (t->import != NULL)
				cube_cancel_fire(t->import);
		}
	}
}

/* What the next daemon does again: a creation that was promised, an attempt to reach an agent. */
static void domain_cut_off(struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);

	if (own->op != NULL && own->op->kind == CUBE_OP_CREATE && !own->op->waits_link)
		cube_cancel_fire(own->op->cancel);
	if (own->conn != NULL && own->conn->agent == NULL)
		cube_cancel_fire(own->conn->cancel);
}

static void domain_unlink(struct cube_cube *c)
{
	cube_conn_drop(c);
	cube_alarm_off(&cube_own(c)->relink);
}

static void domain_each(struct cube_domain *d, void (*fn)(struct cube_cube *c))
{
	cube_list_each (i, &d->cubes)
		fn(cube_list_entry(i, struct cube_cube, link));
	cube_stocks_each(d, fn);
}

void cube_domain_shutdown(struct cube_domain *d, uint32_t ms)
{
	struct cube_domain_own *own = cube_domain_own(d);

	cube_domain_enter(d);
	d->closing = true;
	cube_state_sync_now(d);
	domain_wake_all(d);
	cube_domain_leave(d); /* the answers go out before this thread waits */
	cube_domain_enter(d);
	domain_each(d, domain_cut_off);
	cube_list_each (i, &d->services)
		cube_follow_cancel(cube_list_entry(i, struct cube_service, link));
	if (!domain_wait_quiet(own, cube_clock_mono() + ms * UINT64_C(1000000)))
		domain_cancel_all(d);
	domain_each(d, domain_unlink);
	cube_domain_leave(d);
}

void cube_domain_settle(struct cube_domain *d, uint32_t ms)
{
	cube_domain_enter(d);
	cube_state_sync_now(d);
	(void)domain_wait_quiet(cube_domain_own(d), cube_clock_mono() + ms * UINT64_C(1000000));
	cube_domain_leave(d);
}

static void domain_drop_kept(struct cube_cube *c)
{
	cube_stock_let_go(c);
	cube_list_push(&cube_domain_own(c->domain)->dying, &c->link);
}

static void domain_drop_cubes(struct cube_list *head)
{
	for (struct cube_list *i = cube_list_pop(head); i != NULL; i = cube_list_pop(head)) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		cube_conn_drop(c);
		cube_op_abandon(c);
		cube_cube_unref(c);
	}
}

void cube_domain_close(struct cube_domain *d)
{
	struct cube_domain_own *own;

	if (d == NULL)
		return;
	own = cube_domain_own(d);
	cube_domain_enter(d);
	d->closing = true;
	cube_state_sync_now(d);
	domain_cancel_all(d);
	while (own->works > 0)
		pthread_cond_wait(&own->quiet, &d->lock);
	cube_state_sync_drop(d);
	cube_stocks_each(d, domain_drop_kept);
	cube_conns_abandon(d);
	domain_drop_cubes(&d->cubes);
	domain_drop_cubes(&own->dying);
	cube_domain_leave(d);
	cube_conns_close(d);
	domain_free(d);
}
