/* SPDX-License-Identifier: Apache-2.0 */
/* One question to a sandbox's envd. All of it as root there. */
#include "backends/e2b/e2b_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ENVD_BODY   ((size_t)2 << 20)
#define ENVD_ANSWER ((size_t)4 << 20)
#define ENVD_PART   "cubefs-5f1c0d9b7a3e4826"

static const struct {
	long status;
	int code;
} envd_codes[] = {
	{400, -EINVAL}, {401, -EACCES},    {403, -EACCES},    {404, -ENOENT},    {409, -EBUSY},
	{429, -EDQUOT}, {502, -EHOSTDOWN}, {503, -EREMOTEIO}, {504, -ETIMEDOUT}, {507, -ENOSPC},
};

int e2b_door(const struct cube_e2b *e, const struct e2b_box *box, const char *type, struct e2b_door *ret,
	     struct cube_err *err)
{
	const char *domain = box->domain[0] != '\0' ? box->domain : e->domain;
	unsigned n = 0;

	if (e->sandbox_url[0] != '\0')
		(void)snprintf(ret->base, sizeof(ret->base), "%s", e->sandbox_url);
	else
		(void)snprintf(ret->base, sizeof(ret->base), "https://%d-%s.%s", E2B_ENVD_PORT, box->sid,
			       domain);
	(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "E2b-Sandbox-Id: %s", box->sid);
	(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "E2b-Sandbox-Port: %d", E2B_ENVD_PORT);
	(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "Authorization: Basic cm9vdDo="); /* "root:" */
	(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "Connect-Protocol-Version: 1");
	(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "Keepalive-Ping-Interval: 50");
	if (box->token[0] != '\0')
		(void)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "X-Access-Token: %s", box->token);
	if (type != NULL && (size_t)snprintf(ret->lines[n++], sizeof(ret->lines[0]), "Content-Type: %s",
					     type) >= sizeof(ret->lines[0]))
		return cube_fail(err, -EINVAL, "a type of %zu bytes", strlen(type));
	for (unsigned i = 0; i < n; i++)
		ret->headers[i] = ret->lines[i];
	ret->headers[n] = NULL;
	return 0;
}

int e2b_envd_refused(const struct e2b_box *box, const char *what, long status, const char *text, size_t len,
		     struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const char *name = "";
	int code = -EREMOTEIO;

	if (status >= 200 && status < 300)
		return 0;
	if (cube_json_parse(text, len, "answer", &o, NULL) == 0) {
		name = cube_json_str(o, "code", "");
		text = cube_json_str(o, "message", text);
	}
	for (size_t i = 0; i < CUBE_COUNT(envd_codes); i++)
		if (envd_codes[i].status == status)
			code = envd_codes[i].code;
	if (*name != '\0')
		code = e2b_frames_code(name);
	return cube_fail(err, code, "cannot %s: sandbox %s answers %ld: %.200s", what, box->id, status,
			 *text != '\0' ? text : "nothing");
}

static int envd_run(struct cube_e2b *e, const struct e2b_box *box, const struct cube_http_call *call,
		    const char *what, struct cube_cancel *cancel, json_t **ret, struct cube_err *err)
{
	struct cube_http_answer a;
	int rc;

	cube_http_answer_init(&a, ENVD_ANSWER);
	rc = cube_http_run(e->data, call, cancel, &a, err);
	if (rc == 0)
		rc = e2b_envd_refused(box, what, a.status, cube_buf_str(&a.body), a.body.len, err);
	if (rc == 0 && ret != NULL &&
	    cube_json_parse(cube_buf_str(&a.body), a.body.len, "its answer", ret, err) < 0)
		rc = cube_fail(err, -EREMOTEIO, "cannot %s: sandbox %s answers no JSON", what, box->id);
	cube_http_answer_done(&a);
	return rc;
}

int e2b_envd(struct cube_e2b *e, const struct e2b_box *box, const char *method, const json_t *body,
	     const char *what, struct cube_cancel *cancel, json_t **ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(ENVD_BODY);
	struct e2b_door door;
	char path[100];
	int rc = e2b_door(e, box, method != NULL ? "application/json" : NULL, &door, err);

	(void)snprintf(path, sizeof(path), "/%s", method != NULL ? method : "metrics");
	if (rc == 0 && method != NULL)
		rc = body != NULL ? cube_json_write(body, &text) : cube_buf_adds(&text, "{}");
	if (rc == 0)
		rc = envd_run(e, box,
			      &(struct cube_http_call){.method = method != NULL ? "POST" : "GET",
						       .path = path,
						       .base = door.base,
						       .headers = door.headers,
						       .body = text.data,
						       .body_len = text.len},
			      what, cancel, ret, err);
	cube_buf_done(&text);
	return rc;
}

/* As a form, which every version takes. */
int e2b_envd_put(struct cube_e2b *e, const struct e2b_box *box, const char *path, const void *data,
		 size_t len, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_buf body = CUBE_BUF(len + 1024), where = CUBE_BUF(1024);
	struct e2b_door door;
	int rc = e2b_door(e, box, "multipart/form-data; boundary=" ENVD_PART, &door, err);

	(void)cube_buf_adds(&where, "/files?username=root&path=");
	(void)cube_http_escape(&where, path);
	(void)cube_buf_adds(&body, "--" ENVD_PART
				   "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
				   "Content-Type: application/octet-stream\r\n\r\n");
	(void)cube_buf_add(&body, data, len);
	(void)cube_buf_adds(&body, "\r\n--" ENVD_PART "--\r\n");
	if (rc == 0 && (body.error < 0 || where.error < 0))
		rc = cube_fail(err, -ENOMEM, "out of memory");
	if (rc == 0)
		rc = envd_run(e, box,
			      &(struct cube_http_call){.method = "POST",
						       .path = cube_buf_str(&where),
						       .base = door.base,
						       .headers = door.headers,
						       .body = body.data,
						       .body_len = body.len},
			      "write a file", cancel, NULL, err);
	cube_buf_done(&body);
	cube_buf_done(&where);
	return rc;
}
