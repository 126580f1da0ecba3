/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a sandbox: auto-pause when nobody uses it, the end of its life, leases.
 *
 * One alarm a sandbox, for whatever comes next. It looks at the wall clock, so that suspend and a daemon that was
 * away count, and looks again every minute at the latest, since the alarm's own clock stands still in a suspend and
 * knows nothing of a clock that was set. */
#include <errno.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define LOOK_MS   60000u          /* at the latest */
#define AGAIN_NS  (10 * NS_PER_S) /* until what failed is tried again */
#define ANSWER_NS (5 * NS_PER_S)  /* until the far side is asked again what is left */
#define NEVER     UINT64_MAX

static const char *const at_end_names[CUBE_AT_ENDS] = {
	[CUBE_AT_END_DESTROY] = "destroy",
	[CUBE_AT_END_STOP] = "stop",
	[CUBE_AT_END_PAUSE] = "pause",
};

const char *cube_at_end_name(enum cube_at_end e)
{
	return at_end_names[e];
}

static void times_save(struct cube_cube *c)
{
	struct cube_err err;

	if (cube_state_save(c, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
}

/* ---- The end of its life ---- */

/* Nothing more is to be done: it is as it shall be then. */
static bool end_is_so(const struct cube_cube *c)
{
	switch (c->times.at_end) {
	case CUBE_AT_END_STOP:
		return c->phase == CUBE_STOPPED;
	case CUBE_AT_END_PAUSE:
		return c->phase == CUBE_STOPPED || c->phase == CUBE_PAUSED;
	case CUBE_AT_END_DESTROY:
		break;
	}
	return false;
}

static int end_begin(struct cube_cube *c, struct cube_err *err)
{
	enum cube_op_kind kind = c->times.at_end == CUBE_AT_END_STOP ? CUBE_OP_STOP : CUBE_OP_PAUSE;
	struct cube_own *own = cube_own(c);
	int r;

	if (c->times.at_end == CUBE_AT_END_DESTROY)
		return cube_cube_remove(c, NULL, err);
	r = cube_op_begin(c, kind, 0, NULL, err);
	if (r == 0 && own->op != NULL && own->op->kind == kind)
		own->op->reason = "lifetime";
	return r;
}

static void end_say(struct cube_cube *c)
{
	if (!cube_own(c)->end_told)
		cube_event(c->domain->events, c->name, "lifetime", "%s", cube_at_end_name(c->times.at_end));
	cube_own(c)->end_told = true;
}

static uint64_t end_look(struct cube_cube *c, uint64_t now)
{
	struct cube_own *own = cube_own(c);
	struct cube_err err;

	if (c->times.ends_wall == 0)
		return NEVER;
	if (c->times.ends_wall > now)
		return c->times.ends_wall;
	if (end_is_so(c)) {
		end_say(c);
		c->times.ends_wall = 0;
		own->end_told = false;
		times_save(c);
		return NEVER;
	}
	if (own->end_tried != 0 && now - own->end_tried < AGAIN_NS)
		return own->end_tried + AGAIN_NS;
	if (own->op != NULL && c->times.at_end != CUBE_AT_END_DESTROY)
		return NEVER; /* its end looks again */
	own->end_tried = now;
	end_say(c);
	if (end_begin(c, &err) == 0)
		return NEVER;
	cube_errlog_add(c->errors, NULL, "lifetime", &err);
	return now + AGAIN_NS;
}

bool cube_times_over(const struct cube_cube *c)
{
	return c->times.ends_wall != 0 && c->times.ends_wall <= cube_clock_wall() &&
	       c->times.at_end != CUBE_AT_END_PAUSE;
}

/* ---- Without use ---- */

static void idle_pause(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct cube_err err;

	if (cube_op_begin(c, CUBE_OP_PAUSE, 0, NULL, &err) < 0) {
		cube_errlog_add(c->errors, NULL, "idle", &err);
		c->used_wall = cube_clock_wall();
		return;
	}
	own->op->reason = "idle";
	cube_event(c->domain->events, c->name, "idle", "%u seconds", c->times.idle_s);
}

/* Does the far side still have to say what ended commands left running? */
static bool idle_ask(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (c->times.idle_background || own->left_known)
		return false;
	if (!cube_conn_ready(c))
		return true; /* whoever would answer is not there yet */
	if (!own->left_asked && cube_link_look(c->agent) < 0)
		return false; /* nobody can know */
	own->left_asked = true;
	return true;
}

static uint64_t idle_look(struct cube_cube *c, uint64_t now)
{
	uint64_t idle = c->times.idle_s * NS_PER_S, since;

	if (idle == 0 || c->phase != CUBE_RUNNING || cube_own(c)->op != NULL)
		return NEVER;
	since = cube_use_idle_since(c);
	if (since == 0) /* a file that is closed and a lease that ends tell nobody */
		return now + idle;
	if (since + idle > now)
		return since + idle;
	if (idle_ask(c))
		return now + ANSWER_NS;
	idle_pause(c);
	return now + idle;
}

/* ---- The alarm ---- */

static void times_due(struct cube_alarm *a)
{
	cube_times_look(&cube_container_of(a, struct cube_own, due)->c);
}

void cube_times_init(struct cube_cube *c)
{
	cube_alarm_init(&cube_own(c)->due, times_due);
}

static void times_arm(struct cube_cube *c, uint64_t now, uint64_t next)
{
	struct cube_alarm *due = &cube_own(c)->due;
	uint64_t ms = next > now ? (next - now + NS_PER_MS - 1) / NS_PER_MS : 1;

	if (next == NEVER)
		cube_alarm_off(due);
	else
		cube_alarm_set(c->domain, due, ms < LOOK_MS ? ms : LOOK_MS);
}

void cube_times_look(struct cube_cube *c)
{
	uint64_t now = cube_clock_wall(), life, idle;

	if (c->domain->closing || c->phase == CUBE_CREATING || c->phase >= CUBE_ERROR ||
	    cube_own(c)->unseen) {
		cube_alarm_off(&cube_own(c)->due);
		return;
	}
	(void)cube_cube_ref(c);
	life = end_look(c, now);
	if (c->phase != CUBE_REMOVED) {
		idle = idle_look(c, now);
		times_arm(c, now, life < idle ? life : idle);
	}
	cube_cube_unref(c);
}

void cube_times_begin(struct cube_cube *c)
{
	struct cube_times *t = &c->times;

	c->used_wall = cube_clock_wall();
	/* For one in a pool it begins when it is taken. */
	if (t->lifetime_s != 0 && t->ends_wall == 0 && !cube_own(c)->unseen)
		t->ends_wall = c->used_wall + t->lifetime_s * NS_PER_S;
	cube_times_tell(c);
	cube_times_tell_backend(c);
}

/* While nobody was there nobody could use it. */
void cube_times_found(struct cube_cube *c)
{
	if (cube_own(c)->conn == NULL)
		c->used_wall = cube_clock_wall();
}

void cube_times_failed(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	if (c->phase == CUBE_REMOVED)
		return;
	c->used_wall = cube_clock_wall(); /* an auto-pause comes again after as long as the first time */
	cube_errlog_add(c->errors, NULL, op->reason, &op->err);
}

/* ---- Changed by users ---- */

static int times_seconds(const char *key, const char *value, uint32_t *ret, struct cube_err *err)
{
	uint64_t n;

	if (cube_num_u64(value, UINT32_MAX, &n) < 0)
		return cube_fail(err, -EINVAL, "%s=%s: seconds, 0 for none", key, value);
	*ret = (uint32_t)n;
	return 0;
}

static int times_need(struct cube_cube *c, const char *key, const char *value, enum cube_cap cap,
		      struct cube_err *err)
{
	int r = cube_backend_need(c->service->backend, cap, err);

	if (r < 0)
		(void)cube_fail_in(err, "%s=%s", key, value);
	return r;
}

static int set_idle(struct cube_cube *c, const char *value, struct cube_err *err)
{
	uint32_t n = 0;
	int r = times_seconds("idle", value, &n, err);

	if (r == 0 && n != 0)
		r = times_need(c, "idle", value, CUBE_CAP_PAUSE, err);
	if (r == 0)
		c->times.idle_s = n;
	return r;
}

static int set_idle_background(struct cube_cube *c, const char *value, struct cube_err *err)
{
	int on;

	if (cube_num_bool(value, &on) < 0)
		return cube_fail(err, -EINVAL, "idle_background=%s: yes or no", value);
	c->times.idle_background = on != 0;
	return 0;
}

/* A change while it lives counts from now; before its first run, or after its end, from when it runs. */
static int set_lifetime(struct cube_cube *c, const char *value, struct cube_err *err)
{
	struct cube_times *t = &c->times;
	int r = times_seconds("lifetime", value, &t->lifetime_s, err);

	if (r < 0)
		return r;
	t->ends_wall = 0;
	cube_own(c)->end_told = false;
	if (t->lifetime_s != 0 && c->phase != CUBE_CREATING)
		t->ends_wall = cube_clock_wall() + t->lifetime_s * NS_PER_S;
	return 0;
}

static int set_at_end(struct cube_cube *c, const char *value, struct cube_err *err)
{
	static const enum cube_cap caps[CUBE_AT_ENDS] = {
		[CUBE_AT_END_STOP] = CUBE_CAP_STOP,
		[CUBE_AT_END_PAUSE] = CUBE_CAP_PAUSE,
	};

	for (unsigned e = 0; e < CUBE_AT_ENDS; e++) {
		if (strcmp(value, at_end_names[e]) != 0)
			continue;
		int r = caps[e] != 0 ? times_need(c, "at_end", value, caps[e], err) : 0;
		if (r == 0)
			c->times.at_end = (enum cube_at_end)e;
		return r;
	}
	return cube_fail(err, -EINVAL, "at_end=%s: destroy, stop or pause", value);
}

static const struct {
	const char *key;
	int (*set)(struct cube_cube *c, const char *value, struct cube_err *err);
} times_keys[] = {
	{"idle", set_idle},
	{"idle_background", set_idle_background},
	{"lifetime", set_lifetime},
	{"at_end", set_at_end},
};

int cube_times_set(struct cube_cube *c, const char *key, const char *value, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(times_keys); i++) {
		if (strcmp(key, times_keys[i].key) != 0)
			continue;
		int r = times_keys[i].set(c, value, err);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* On disk, or as it was. */
static int times_change(struct cube_cube *c, const struct cube_times *times, struct cube_err *err)
{
	const struct cube_times old = c->times;
	int r;

	c->times = *times;
	r = cube_state_save(c, err);
	if (r < 0)
		c->times = old;
	else
		cube_times_changed(c);
	cube_times_look(c);
	return r;
}

int cube_cube_renew(struct cube_cube *c, uint32_t seconds, struct cube_err *err)
{
	struct cube_times t = c->times;

	t.ends_wall = cube_clock_wall() + seconds * NS_PER_S;
	cube_own(c)->end_told = false;
	cube_own(c)->end_tried = 0;
	return times_change(c, &t, err);
}

int cube_cube_lease(struct cube_cube *c, uint32_t seconds, struct cube_err *err)
{
	struct cube_times t = c->times;
	uint64_t now = cube_clock_wall();

	c->used_wall = now; /* also at its end: the time without use begins */
	t.lease_wall = seconds != 0 ? now + seconds * NS_PER_S : 0;
	return times_change(c, &t, err);
}
