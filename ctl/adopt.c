/* SPDX-License-Identifier: Apache-2.0 */
/* adopt=ID: a sandbox that is at the backend, and that nobody here has, becomes one of ours; at its end it is let
 * go instead of being destroyed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

/* What a sandbox that exists has is not said, but found. */
static const char *adopt_settled(const struct cube_cube *c, const struct cube_own *own)
{
	const struct cube_limits *l = &c->limits;
	const struct {
		bool said;
		const char *what;
	} settled[] = {
		{c->template != NULL, "template"},
		{c->net != CUBE_NET_NONE, "net"},
		{c->privileged, "privileged"},
		{l->memory != 0 || l->disk != 0 || l->pids != 0 || l->cpus_milli != 0, "a limit"},
		{own->n_volumes > 0, "volume"},
		{own->inside.user != NULL, "user"},
		{own->inside.hosts.len > 0, "host.NAME"},
		{own->inside.gpu, "gpu"},
		{own->n_extra > 0, "a key of the backend"},
	};

	for (size_t i = 0; i < CUBE_COUNT(settled); i++)
		if (settled[i].said)
			return settled[i].what;
	return NULL;
}

/* Shells that another one's commands have left in it are not our sessions: ours have other numbers. */
static void adopt_sessions(struct cube_cube *c)
{
	struct cube_session *s = cube_session_main(c);

	s->number = s->seq = strtoull(c->uid, NULL, 16) >> 16 | 1;
	cube_own(c)->next_session = s->number + 1;
}

int cube_adopt_check(struct cube_cube *c, struct cube_err *err)
{
	const char *settled = adopt_settled(c, cube_own(c));
	struct cube_info info = {.state = CUBE_IS_GONE};
	struct cube_cube *other;

	(void)snprintf(info.id, sizeof(info.id), "%s", c->adopted);
	if (settled != NULL)
		return cube_fail(err, -EINVAL, "adopt=%s: %s cannot be said of a sandbox that exists",
				 c->adopted, settled);
	int r = cube_backend_need(c->service->backend, CUBE_CAP_ADOPT, err);
	if (r < 0)
		return r;
	if (cube_domain_own(c->domain)->sweeps > 0)
		return cube_fail(err, -EBUSY, "adopt=%s: a sweep is under way: try again", c->adopted);
	other = cube_service_has(c->service, &info);
	if (other != NULL)
		return cube_fail(err, -EBUSY, "adopt=%s: sandbox '%s' has it", c->adopted, other->name);
	adopt_sessions(c);
	return 0;
}

/* It may stand still in any way: whoever adopts it is told that it runs, as with any other. */
static int adopt_start(struct cube_op *op, struct cube_backend *b, const char *id)
{
	op->code = cube_backend_inspect(b, id, &op->info, &op->err);
	if (op->code == 0 && op->info.state == CUBE_IS_STOPPED)
		op->code = cube_backend_start(b, id, op->cancel, &op->err);
	else if (op->code == 0 && op->info.state == CUBE_IS_PAUSED)
		op->code = cube_backend_resume(b, id, op->cancel, &op->err);
	return op->code;
}

int cube_adopt_run(struct cube_op *op)
{
	struct cube_backend *b = op->cube->service->backend;
	const char *id = op->cube->adopted; /* never changes */
	cube_auto_str copy = cube_strdup(id);

	if (copy == NULL)
		return cube_fail(&op->err, -ENOMEM, "out of memory");
	op->code = cube_backend_adopt(b, id, op->spec.spec.uid, op->cancel, &op->err);
	if (op->code == 0 && adopt_start(op, b, id) < 0)
		(void)cube_backend_let_go(b, id, NULL);
	if (op->code < 0)
		return op->code;
	cube_free(op->id);
	op->id = cube_steal(copy);
	return 0;
}

int cube_adopt_take(struct cube_cube *c, const struct cube_info *info)
{
	if (info->template[0] != '\0' && c->template == NULL) {
		c->template = cube_strdup(info->template);
		if (c->template == NULL)
			return -ENOMEM;
	}
	c->limits = info->limits;
	c->net = info->net;
	return 0;
}
