/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: a list sorted by time behind one timer of the loop. */
#include "ctl/alarm.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/loop.h"
#include "ctl/ctl_priv.h"

#define ALARM_MS UINT64_C(1000000)

/* Only the loop's own thread may touch the timer, so an earlier deadline is posted to it. The post may
 * outlive the domain (the loop runs what is left when it is freed), so it has memory of its own. */
struct alarm_poster {
	struct cube_post post;
	struct cube_alarms *alarms; /* NULL: closed */
	bool posted;
};

struct cube_alarms {
	struct cube_domain *domain;
	struct cube_list sorted; /* struct cube_alarm, the earliest first */
	struct cube_timer *timer;
	struct alarm_poster *poster;
	uint64_t armed_ns; /* what the timer is, or is being, set to; UINT64_MAX: nothing */
};

static struct cube_alarm *alarm_first(const struct cube_alarms *as)
{
	if (cube_list_empty(&as->sorted))
		return NULL;
	return cube_list_entry(as->sorted.next, struct cube_alarm, link);
}

/* On the loop's thread, under the lock. */
static void alarms_arm(struct cube_alarms *as)
{
	const struct cube_alarm *first = alarm_first(as);
	uint64_t now = cube_clock_mono();

	if (first == NULL) {
		as->armed_ns = UINT64_MAX;
		cube_timer_stop(as->timer);
		return;
	}
	as->armed_ns = first->due_ns;
	/* Rounded up: a timer that comes early would only be set again. */
	cube_timer_start(as->timer,
			 first->due_ns > now ? (first->due_ns - now + ALARM_MS - 1) / ALARM_MS : 0);
}

static void alarms_fire(void *ctx)
{
	struct cube_alarms *as = ctx;
	uint64_t now;

	cube_domain_enter(as->domain);
	now = cube_clock_mono();
	for (;;) {
		struct cube_alarm *a = alarm_first(as);

		if (a == NULL || a->due_ns > now)
			break;
		cube_list_remove(&a->link);
		a->fn(a);
	}
	alarms_arm(as);
	cube_domain_leave(as->domain);
}

static void alarms_posted(struct cube_post *post)
{
	struct alarm_poster *p = cube_container_of(post, struct alarm_poster, post);

	if (p->alarms == NULL) {
		cube_free(p);
		return;
	}
	cube_domain_enter(p->alarms->domain);
	p->posted = false;
	alarms_arm(p->alarms);
	cube_domain_leave(p->alarms->domain);
}

void cube_alarm_init(struct cube_alarm *a, void (*fn)(struct cube_alarm *))
{
	cube_list_init(&a->link);
	a->due_ns = 0;
	a->fn = fn;
}

static void alarm_insert(struct cube_list *head, struct cube_alarm *a)
{
	struct cube_list *at = head->prev;

	/* From the end: most deadlines are later than those that are there. */
	while (at != head && cube_list_entry(at, struct cube_alarm, link)->due_ns > a->due_ns)
		at = at->prev;
	a->link.prev = at;
	a->link.next = at->next;
	at->next->prev = &a->link;
	at->next = &a->link;
}

void cube_alarm_set(struct cube_domain *d, struct cube_alarm *a, uint64_t ms)
{
	struct cube_alarms *as = cube_domain_own(d)->alarms;

	cube_list_remove(&a->link);
	a->due_ns = cube_clock_mono() + ms * ALARM_MS;
	alarm_insert(&as->sorted, a);
	if (a->due_ns >= as->armed_ns || as->poster->posted)
		return;
	as->armed_ns = a->due_ns;
	as->poster->posted = true;
	cube_loop_post(d->loop, &as->poster->post);
}

void cube_alarm_off(struct cube_alarm *a)
{
	cube_list_remove(&a->link);
}

bool cube_alarm_is_on(const struct cube_alarm *a)
{
	return !cube_list_empty(&a->link);
}

struct cube_alarms *cube_alarms_open(struct cube_domain *d)
{
	struct cube_alarms *as = cube_calloc(1, sizeof(*as));

	if (as == NULL)
		return NULL;
	cube_list_init(&as->sorted);
	as->domain = d;
	as->armed_ns = UINT64_MAX;
	as->poster = cube_calloc(1, sizeof(*as->poster));
	as->timer = cube_timer_new(d->loop, alarms_fire, as);
	if (as->poster == NULL || as->timer == NULL) {
		cube_timer_free(as->timer);
		cube_free(as->poster);
		cube_free(as);
		return NULL;
	}
	as->poster->alarms = as;
	as->poster->post.fn = alarms_posted;
	return as;
}

void cube_alarms_close(struct cube_alarms *as)
{
	if (as == NULL)
		return;
	cube_timer_free(as->timer);
	as->poster->alarms = NULL;
	if (!as->poster->posted)
		cube_free(as->poster);
	cube_free(as);
}
