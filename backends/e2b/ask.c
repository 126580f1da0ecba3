/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the service.
 *
 * It is asked again where that can do no harm: an answer that says that nothing was done (429, or 503 with a time to come
 * back) always, a lost answer and the failures of what stands before the service only where twice is as good as once. All
 * of it within ASK_PATIENCE. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/clock.h"
#include "backends/base/num.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define ASK_BODY     ((size_t)1 << 20)
#define ASK_ANSWER   ((size_t)16 << 20)
#define ASK_TRIES    6
#define ASK_FIRST_MS 250
#define ASK_PATIENCE (60 * E2B_NS_PER_S)

static const struct {
	long status;
	int code;
} ask_codes[] = {
	{400, -EINVAL}, {401, -EACCES}, {403, -EACCES},     {404, -ENOENT},    {409, -EBUSY},
	{410, -ENOENT}, {429, -EDQUOT}, {501, -EOPNOTSUPP}, {504, -ETIMEDOUT}, {507, -ENOSPC},
};

static int ask_code(long status)
{
	for (size_t i = 0; i < CUBE_COUNT(ask_codes); i++)
		if (ask_codes[i].status == status)
			return ask_codes[i].code;
	return status >= 200 && status < 300 ? 0 : -EREMOTEIO;
}

static int ask_refused(const struct cube_e2b *e, const struct e2b_ask *a,
		       const struct cube_http_answer *answer, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const char *text = cube_buf_str(&answer->body);
	int code = ask_code(answer->status);

	if (code == 0)
		return 0;
	if (cube_json_parse(text, answer->body.len, "answer", &o, NULL) == 0)
		text = cube_json_str(o, "message", text);
	if (answer->status == 401)
		return cube_fail(err, code, "cannot %s: %.100s does not take the key of %s: %.100s", a->what,
				 e->url, e->key_from, text);
	return cube_fail(err, code, "cannot %s: the service at %.100s answers %ld: %.180s", a->what, e->url,
			 answer->status, *text != '\0' ? text : "nothing");
}

static int ask_answered(const struct cube_e2b *e, const struct e2b_ask *a,
			const struct cube_http_answer *answer, struct cube_err *err)
{
	int rc = ask_refused(e, a, answer, err);
	struct cube_err why = {0};

	if (a->ret_status != NULL)
		*a->ret_status = answer->status;
	if (rc == 0 && a->next != NULL && !cube_http_header(answer, "X-Next-Token", a->next, E2B_CURSOR))
		a->next[0] = '\0';
	if (rc < 0 || a->ret == NULL)
		return rc;
	if (cube_json_parse(answer->body.data != NULL ? answer->body.data : "", answer->body.len,
			    "its answer", a->ret, &why) < 0)
		return cube_fail(err, why.code == -ENOMEM ? -ENOMEM : -EREMOTEIO,
				 "cannot %s: the service at %.100s: %s", a->what, e->url, why.text);
	return 0;
}

int e2b_wait(uint64_t ms, struct cube_cancel *cancel, struct cube_err *err)
{
	struct pollfd p = {.fd = cube_cancel_fd(cancel), .events = POLLIN};
	uint64_t end = cube_clock_mono() + ms * 1000000, now;

	while (!cube_cancel_fired(cancel) && (now = cube_clock_mono()) < end)
		(void)poll(&p, p.fd >= 0 ? 1 : 0, (int)((end - now) / 1000000 + 1));
	return cube_cancel_fired(cancel) ? cube_fail(err, -EINTR, "interrupted") : 0;
}

/* Whether it is to be asked again, and in how many milliseconds. */
static bool ask_again(const struct e2b_ask *a, int rc, const struct cube_http_answer *answer, unsigned tries,
		      uint64_t *ret_ms)
{
	uint64_t wait = (uint64_t)ASK_FIRST_MS << tries, seconds = 0;
	char after[32] = "";
	bool told = rc == 0 && cube_http_header(answer, "Retry-After", after, sizeof(after)) &&
		    cube_num_u64(after, 3600, &seconds) == 0;

	*ret_ms = told ? seconds * 1000 : wait;
	if (tries + 1 >= ASK_TRIES)
		return false;
	if (rc < 0)
		return a->repeat && (rc == -EREMOTEIO || rc == -EHOSTUNREACH) && tries < 2;
	return answer->status == 429 || (answer->status == 503 && (told || a->repeat)) ||
	       (a->repeat && (answer->status == 502 || answer->status == 504));
}

static int ask_body(const struct e2b_ask *a, struct cube_buf *body, struct cube_err *err)
{
	int rc = a->body != NULL ? cube_json_write(a->body, body) : 0;

	return rc < 0 ? cube_fail(err, rc, "cannot %s: %s", a->what, cube_errno_text(rc)) : 0;
}

static int ask_till_answered(struct cube_e2b *e, const struct e2b_ask *a, const struct cube_http_call *call,
			     struct cube_cancel *cancel, struct cube_http_answer *answer,
			     struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + ASK_PATIENCE, ms;

	for (unsigned tries = 0;; tries++) {
		int rc = cube_http_run(e->http, call, cancel, answer, err);

		if (!ask_again(a, rc, answer, tries, &ms) || cube_clock_mono() + ms * 1000000 > end)
			return rc;
		rc = e2b_wait(ms, cancel, err);
		if (rc < 0)
			return rc;
	}
}

int e2b_ask(struct cube_e2b *e, const struct e2b_ask *a, struct cube_cancel *cancel, struct cube_err *err)
{
	const char *headers[] = {e->key, "Accept: application/json", NULL, NULL};
	struct cube_buf body = CUBE_BUF(ASK_BODY);
	struct cube_http_answer answer;
	int rc;

	if (e->why[0] != '\0')
		return cube_fail(err, -EACCES, "cannot %s: %s", a->what, e->why);
	rc = ask_body(a, &body, err);
	if (body.data != NULL)
		headers[2] = "Content-Type: application/json";
	cube_http_answer_init(&answer, ASK_ANSWER);
	if (rc == 0)
		rc = ask_till_answered(e, a,
				       &(struct cube_http_call){.method = a->method,
								.path = a->path,
								.headers = headers,
								.body = body.data,
								.body_len = body.len,
								.timeout_s = a->timeout_s},
				       cancel, &answer, err);
	if (rc == 0)
		rc = ask_answered(e, a, &answer, err);
	cube_http_answer_done(&answer);
	cube_buf_done(&body);
	return rc;
}
