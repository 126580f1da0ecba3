/* SPDX-License-Identifier: Apache-2.0 */
/* `access`: how other tools reach a sandbox. Its backend is asked. */
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/cube.h"

#define ACCESS_MAX ((size_t)64 << 10)

struct access_work {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	char id[CUBE_ID_MAX + 1];
	struct cube_buf text;
};

void cube_access_init(struct cube_cube *c)
{
	cube_buf_init(&c->access.text, ACCESS_MAX);
	cube_waitq_init(&c->access.asked.answered);
}

static void access_line(void *ctx, const char *line)
{
	(void)cube_buf_printf(ctx, "%s\n", line);
}

static void access_run(struct cube_work *w)
{
	struct access_work *aw = cube_container_of(w, struct access_work, work);
	struct cube_cube *c = aw->cube;
	struct cube_domain *d = c->domain;
	int r = cube_backend_access(c->service->backend, aw->id, access_line, &aw->text, NULL);

	cube_domain_enter(d);
	if (r == 0) {
		struct cube_buf old = c->access.text;

		c->access.text = aw->text;
		aw->text = old;
	}
	cube_asked_answer(&c->access.asked);
	cube_cube_unref(c);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_buf_done(&aw->text);
	cube_free(aw);
}

void cube_access_ask(struct cube_cube *c)
{
	struct access_work *aw;

	if (c->access.asked.asking)
		return;
	aw = c->id == NULL || c->domain->closing || c->phase >= CUBE_ERROR ? NULL
									   : cube_calloc(1, sizeof(*aw));
	if (aw == NULL) { /* what is not there cannot be reached */
		cube_asked_answer(&c->access.asked);
		return;
	}
	aw->work =
		(struct cube_work){.run = access_run, .key = cube_backend_queue_key(c->service->backend, c)};
	aw->cube = cube_cube_ref(c);
	cube_buf_init(&aw->text, ACCESS_MAX);
	(void)snprintf(aw->id, sizeof(aw->id), "%s", c->id);
	c->access.asked.asking = true;
	cube_task_submit(c->domain, &aw->work);
}
