/* SPDX-License-Identifier: Apache-2.0 */
/* put and get. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/transfer.h"
#include "ctl/verbs/verbs.h"

#define TRANSFER_PHASES (1u << CUBE_RUNNING | 1u << CUBE_PAUSED | 1u << CUBE_STOPPED)
#define REMOVE_MAX      64u

static void transfer_done(void *ctx, int code, uint64_t files, uint64_t bytes, uint64_t skipped,
			  const struct cube_err *err)
{
	struct cube_verb_call *call = ctx;

	if (err != NULL)
		call->err = *err;
	(void)snprintf(call->answer, sizeof(call->answer), "files=%llu bytes=%llu skipped=%llu",
		       (unsigned long long)files, (unsigned long long)bytes, (unsigned long long)skipped);
	call->state = NULL;
	cube_verb_finish(call, code);
}

static void transfer_cancel(struct cube_verb_call *call)
{
	cube_transfer_leave(cube_steal(call->state));
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted", call->verb->name);
}

static int transfer_begin(struct cube_verb_call *call, struct cube_transfer_order *o, struct cube_err *err)
{
	struct cube_transfer *t;
	int r;

	o->done = transfer_done;
	o->ctx = call;
	r = cube_transfer_begin(call->object, &call->by, o, &t, err);
	if (r < 0)
		return r;
	call->state = t;
	call->cancel = transfer_cancel;
	return 1;
}

/* ---- put ---- */

static int put_owner(const char *value, struct cube_transfer_order *o)
{
	const char *colon = strchr(value, ':');
	char uid[16];
	uint64_t u, g;

	if (colon == NULL || (size_t)(colon - value) >= sizeof(uid))
		return -EINVAL;
	(void)snprintf(uid, sizeof(uid), "%.*s", (int)(colon - value), value);
	if (cube_num_u64(uid, UINT32_MAX - 1, &u) < 0 || cube_num_u64(colon + 1, UINT32_MAX - 1, &g) < 0)
		return -EINVAL;
	o->uid = (uint32_t)u;
	o->gid = (uint32_t)g;
	return 0;
}

static int put_mode(const char *value, struct cube_transfer_order *o)
{
	size_t n = strspn(value, "01234567");

	if (n == 0 || n > 4 || value[n] != '\0')
		return -EINVAL;
	o->mode = 0;
	for (size_t i = 0; i < n; i++)
		o->mode = o->mode * 8 + (value[i] - '0');
	return 0;
}

static int put_key(struct cube_transfer_order *o, const char **remove, const char *key, const char *value,
		   struct cube_err *err)
{
	if (strcmp(key, "owner") == 0)
		return put_owner(value, o) < 0 ? cube_fail(err, -EINVAL, "put: owner=%s: UID:GID", value) : 0;
	if (strcmp(key, "mode") == 0)
		return put_mode(value, o) < 0
			       ? cube_fail(err, -EINVAL, "put: mode=%s: one to four octal digits", value)
			       : 0;
	if (strcmp(key, "remove") != 0)
		return cube_fail(err, -EINVAL, "put: no key '%s'; known: owner, mode, remove", key);
	remove[o->n_remove++] = value;
	return 0;
}

static int put_run(struct cube_verb_call *call, struct cube_err *err)
{
	const char *remove[REMOVE_MAX + 2];
	struct cube_transfer_order o = {
		.host = call->words[1], .path = call->words[2], .mode = -1, .remove = remove};
	int r = 0;

	for (unsigned i = 3; r == 0 && i < call->n_words; i++) {
		const char *value = cube_verb_value("put", call->words[i], err);

		r = value != NULL ? put_key(&o, remove, call->words[i], value, err) : -EINVAL;
	}
	return r < 0 ? r : transfer_begin(call, &o, err);
}

const struct cube_verb cube_verb_put = {
	.name = "put",
	.args = "HOSTPATH PATH [owner=UID:GID] [mode=OCTAL] [remove=PATH ...]",
	.summary = "the contents of a directory or archive of this machine become PATH, in one step",
	.min = 2,
	.max = 4 + REMOVE_MAX,
	.needs = CUBE_CAP_FILES,
	.phases = TRANSFER_PHASES,
	.run = put_run,
};

/* ---- get ---- */

static int get_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_transfer_order o = {
		.get = true, .path = call->words[1], .host = call->words[2], .mode = -1};

	return transfer_begin(call, &o, err);
}

const struct cube_verb cube_verb_get = {
	.name = "get",
	.args = "PATH HOSTPATH",
	.summary = "copy a file or directory to this machine, in one step",
	.min = 2,
	.max = 2,
	.needs = CUBE_CAP_FILES,
	.phases = TRANSFER_PHASES,
	.run = get_run,
};
