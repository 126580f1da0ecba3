/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of an exposed port: sign, revoke, name, public, listen. */
#include <errno.h>
#include <stdio.h>

#include "backends/base/num.h"
#include "ctl/ports/port.h"
#include "ctl/verbs/verbs.h"

/* "url=..." as far as an answer holds it; all of it is in the file. */
static int port_answer(struct cube_verb_call *call)
{
	struct cube_buf url = CUBE_BUF(sizeof(call->answer) - sizeof("url="));

	if (cube_port_url(call->object, &url) == 0)
		(void)snprintf(call->answer, sizeof(call->answer), "url=%s", cube_buf_str(&url));
	cube_buf_done(&url);
	return 0;
}

static int sign_run(struct cube_verb_call *call, struct cube_err *err)
{
	uint32_t seconds = CUBE_PORT_SECONDS;
	int r = call->n_words > 1 ? cube_verb_seconds("sign", call->words[1], &seconds, err) : 0;

	if (r == 0)
		r = cube_port_sign(call->object, seconds, err);
	return r < 0 ? r : port_answer(call);
}

const struct cube_verb cube_verb_port_sign = {
	.name = "sign",
	.args = "[SECONDS]",
	.summary = "a fresh url that is good for so long (3600); earlier ones end",
	.max = 1,
	.run = sign_run,
};

static int revoke_run(struct cube_verb_call *call, struct cube_err *err)
{
	return cube_port_revoke(call->object, err);
}

const struct cube_verb cube_verb_port_revoke = {
	.name = "revoke",
	.args = "",
	.summary = "no url is good any more; cuts what is connected, unless it is public",
	.run = revoke_run,
};

static int name_run(struct cube_verb_call *call, struct cube_err *err)
{
	return cube_port_set_word(call->object, call->words[1], err);
}

const struct cube_verb cube_verb_port_name = {
	.name = "name",
	.args = "WORD",
	.summary = "what it is for, shown in status",
	.min = 1,
	.max = 1,
	.run = name_run,
};

static int public_run(struct cube_verb_call *call, struct cube_err *err)
{
	int on;

	if (cube_num_bool(call->words[1], &on) < 0)
		return cube_fail(err, -EINVAL, "public %s: yes or no", call->words[1]);
	return cube_port_set_open(call->object, on != 0, err);
}

const struct cube_verb cube_verb_port_public = {
	.name = "public",
	.args = "yes|no",
	.summary = "whether everybody may come in, without the word in the url",
	.min = 1,
	.max = 1,
	.run = public_run,
};

static int listen_run(struct cube_verb_call *call, struct cube_err *err)
{
	int r = cube_port_listen(call->object, call->words[1], err);

	return r < 0 ? r : port_answer(call);
}

const struct cube_verb cube_verb_port_listen = {
	.name = "listen",
	.args = "ADDRESS:PORT",
	.summary = "where it is reached on this side; port 0: a free one",
	.min = 1,
	.max = 1,
	.run = listen_run,
};
