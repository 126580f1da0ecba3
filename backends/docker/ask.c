/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the engine. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <string.h>

#define ASK_BODY   ((size_t)8 << 20)
#define ASK_ANSWER ((size_t)64 << 20) /* a list of very many containers */

static const struct {
	long status;
	int code;
} ask_codes[] = {
	{304, 0},      {400, -EINVAL},    {401, -EACCES},     {403, -EACCES},    {404, -ENOENT},
	{409, -EBUSY}, {500, -EREMOTEIO}, {501, -EOPNOTSUPP}, {503, -EREMOTEIO},
};

static const struct {
	const char *text;
	int code;
} ask_texts[] = {
	{"no space left", -ENOSPC},
	{"isk quota exceeded", -EDQUOT},
	{"No such image", -ENOENT},
};

static int ask_code(long status, const char *text)
{
	for (size_t i = 0; status >= 400 && i < CUBE_COUNT(ask_texts); i++)
		if (strstr(text, ask_texts[i].text) != NULL)
			return ask_texts[i].code;
	for (size_t i = 0; i < CUBE_COUNT(ask_codes); i++)
		if (ask_codes[i].status == status)
			return ask_codes[i].code;
	return status >= 200 && status < 300 ? 0 : -EREMOTEIO;
}

/* The sentence of an answer that is a failure. */
static int ask_refused(const struct cube_docker *d, const struct docker_ask *a,
		       const struct cube_http_answer *answer, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const char *text = cube_buf_str(&answer->body);
	int code;

	if (cube_json_parse(text, answer->body.len, "answer", &o, NULL) == 0)
		text = cube_json_str(o, "message", text);
	code = ask_code(answer->status, text);
	if (code == 0)
		return 0;
	return cube_fail(err, code, "cannot %s: the engine at %.100s answers %ld: %.200s", a->what, d->where,
			 answer->status, *text != '\0' ? text : "nothing");
}

static int ask_answered(const struct cube_docker *d, const struct docker_ask *a,
			const struct cube_http_answer *answer, struct cube_err *err)
{
	struct cube_err why = {0};

	if (answer->status < 200 || answer->status >= 300)
		return ask_refused(d, a, answer, err);
	if (a->ret == NULL)
		return 0;
	if (cube_json_parse(answer->body.data != NULL ? answer->body.data : "", answer->body.len,
			    "its answer", a->ret, &why) < 0)
		return cube_fail(err, why.code == -ENOMEM ? -ENOMEM : -EREMOTEIO,
				 "cannot %s: the engine at %.100s: %s", a->what, d->where, why.text);
	return 0;
}

int docker_ask(struct cube_docker *d, const struct docker_ask *a, struct cube_cancel *cancel,
	       struct cube_err *err)
{
	static const char *const json_type[] = {"Content-Type: application/json", NULL};
	static const char *const tar_type[] = {"Content-Type: application/x-tar", NULL};
	cube_auto_str path =
		cube_asprintf("%s%s%s", a->plain ? "" : "/v", a->plain ? "" : d->engine.api, a->path);
	struct cube_buf body = CUBE_BUF(ASK_BODY);
	struct cube_http_answer answer;
	int rc = path != NULL ? 0 : -ENOMEM;

	if (d->http == NULL)
		return cube_fail(err, -EHOSTUNREACH, "%s", d->why);
	if (rc == 0 && a->body != NULL)
		rc = cube_json_write(a->body, &body);
	if (rc < 0) {
		cube_buf_done(&body);
		return cube_fail(err, rc, "cannot %s: %s", a->what, cube_errno_text(rc));
	}
	cube_http_answer_init(&answer, ASK_ANSWER);
	rc = cube_http_run(d->http,
			   &(struct cube_http_call){.method = a->method,
						    .path = path,
						    .headers = a->has_fd   ? tar_type
							       : body.data ? json_type
									   : NULL,
						    .body = body.data,
						    .body_len = body.len,
						    .body_fd = a->body_fd,
						    .has_fd = a->has_fd,
						    .sink = a->sink,
						    .ctx = a->ctx,
						    .timeout_s = a->timeout_s},
			   cancel, &answer, err);
	if (rc == 0)
		rc = ask_answered(d, a, &answer, err);
	cube_http_answer_done(&answer);
	cube_buf_done(&body);
	return rc;
}
