/* SPDX-License-Identifier: Apache-2.0 */
/* The service ends by a clock of its own what nobody renews. Each sandbox has a lease of the configured length; it is
 * renewed when half of it is over, by our clock alone, for as long as the daemon wants it to live. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEASE_BATCH 64

static uint64_t lease_next(const struct cube_e2b *e)
{
	return cube_clock_mono() + (uint64_t)e->lease_s * E2B_NS_PER_S / 2;
}

void e2b_lease_begin(struct cube_e2b *e, const char *id)
{
	e2b_box_keep(e, id, UINT64_MAX, lease_next(e));
}

/* The seconds that are left until @until, within the lease. */
static int lease_seconds(const struct cube_e2b *e, uint64_t until)
{
	uint64_t now = cube_clock_wall(), left;

	if (until == UINT64_MAX)
		return (int)e->lease_s;
	left = until > now ? (until - now + E2B_NS_PER_S - 1) / E2B_NS_PER_S : 0;
	return left < 1 ? 1 : left < e->lease_s ? (int)left : (int)e->lease_s;
}

static int lease_tell(struct cube_e2b *e, const char *id, uint64_t until, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_pack("{s:i}", "timeout", lease_seconds(e, until));

	if (body == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	return e2b_box_post(e, id, "/timeout", body, "renew the time of", cancel, NULL, err);
}

/* It ends, or is paused, when nobody is there to do better: the service knows no more than that. */
int e2b_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
	       struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	uint64_t until = wall_ns != 0 ? wall_ns : UINT64_MAX;
	int rc = lease_tell(e, id, until, NULL, err);

	(void)what;
	if (rc == 0)
		e2b_box_keep(e, id, until, lease_next(e));
	return rc;
}

struct lease_due {
	uint64_t now, wall;
	unsigned n;
	struct {
		char id[CUBE_ID_MAX + 1];
		uint64_t until;
	} due[LEASE_BATCH];
};

static int lease_look(void *ctx, const char *id, void *value)
{
	struct lease_due *d = ctx;
	const struct e2b_box *box = value;

	if (box->until <= d->wall || box->renew_at > d->now)
		return 0;
	(void)snprintf(d->due[d->n].id, sizeof(d->due[0].id), "%s", id);
	d->due[d->n].until = box->until;
	return ++d->n == LEASE_BATCH ? 1 : 0;
}

/* One that was told another end meanwhile keeps that. */
static void lease_renewed(struct cube_e2b *e, const char *id, uint64_t was, uint64_t until)
{
	struct e2b_box *box;

	pthread_mutex_lock(&e->lock);
	box = cube_map_get(e->boxes, id);
	if (box != NULL && box->until == was) {
		box->until = until;
		box->renew_at = lease_next(e);
	}
	pthread_mutex_unlock(&e->lock);
}

void e2b_lease_renew(struct cube_e2b *e, struct cube_cancel *cancel)
{
	struct lease_due d = {.now = cube_clock_mono(), .wall = cube_clock_wall()};
	struct cube_err err = {0};

	pthread_mutex_lock(&e->lock);
	(void)cube_map_each(e->boxes, lease_look, &d);
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < d.n && !cube_cancel_fired(cancel); i++) {
		int rc = lease_tell(e, d.due[i].id, d.due[i].until, cancel, &err);

		if (rc == -EINTR)
			return;
		/* One that is paused, or that has lived for as long as the service allows, is told again later. */
		lease_renewed(e, d.due[i].id, d.due[i].until, rc == -ENOENT ? 0 : d.due[i].until);
	}
}
