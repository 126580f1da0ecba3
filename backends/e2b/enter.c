/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init in a sandbox, and the link to it.
 *
 * envd starts it like any process, as root, with open input, and it stays when the connection that started it has ended.
 * It is found again by its tag. What envd's own processes lack is cube-init's: output that nobody reads is kept, whole
 * trees get signals, the end of each command is remembered until it has been told. */
#include "backends/e2b/e2b_priv.h"

#include "backends/agent/file.h"
#include "backends/agent/link.h"
#include "backends/base/clock.h"
#include "backends/base/digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGENT_TAG     "cubefs-agent"
#define AGENT_PATH    "/var/lib/cubefs/cube-init" /* and a dot, and its digest */
#define AGENT_RUN_DIR "/run/cubefs"
#define AGENT_MAX     ((size_t)32 << 20)
#define AGENT_LOOK_MS 100
#define AGENT_SCRIPT                                                                                         \
	"chmod 0755 \"$1\" && mkdir -p /workspace && exec \"$1\" --stdio --run-dir " AGENT_RUN_DIR

/* ---- the binary ---- */

static int agent_read(int fd, struct cube_buf *out)
{
	ssize_t n;

	do {
		char *to = cube_buf_reserve(out, 65536);

		if (to == NULL)
			return out->error;
		n = read(fd, to, 65536);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0);
	return n < 0 ? -errno : 0;
}

void e2b_agent_load(struct cube_e2b *e)
{
	struct cube_err why = {0};
	cube_auto_fd from = cube_agent_file_open(&why);
	struct cube_digest *sum = cube_digest_new();
	char digest[CUBE_DIGEST_TEXT];
	int rc = from < 0 ? from : sum == NULL ? -ENOMEM : agent_read(from, &e->agent);

	if (rc < 0) {
		cube_buf_done(&e->agent);
		(void)snprintf(e->agent_why, sizeof(e->agent_why), "%.159s",
			       why.code != 0 ? why.text : cube_errno_text(rc));
	} else {
		cube_digest_add(sum, e->agent.data, e->agent.len);
		(void)snprintf(e->agent_path, sizeof(e->agent_path), AGENT_PATH ".%.16s",
			       cube_digest_end(sum, digest) + strlen("sha256:"));
	}
	cube_digest_free(sum);
}

/* ---- the process ---- */

/* *ret_pid 0: it does not run there. */
static int agent_find(struct cube_e2b *e, const struct e2b_box *box, struct cube_cancel *cancel, int *ret_pid,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const json_t *one;
	size_t i;
	int rc = e2b_envd(e, box, "process.Process/List", NULL, "list processes", cancel, &o, err);

	if (rc < 0)
		return rc;
	*ret_pid = 0;
	json_array_foreach(json_object_get(o, "processes"), i, one)
	{
		int64_t pid = cube_json_int(one, "pid", 0);

		if (strcmp(cube_json_str(one, "tag", ""), AGENT_TAG) == 0 && pid > 0 && pid <= INT32_MAX)
			*ret_pid = (int)pid;
	}
	return 0;
}

struct agent_begun {
	struct e2b_frames frames;
	struct cube_err why;
	int pid;
};

static int begun_message(void *ctx, const json_t *message)
{
	struct agent_begun *s = ctx;
	int64_t pid = cube_json_int(json_object_get(json_object_get(message, "event"), "start"), "pid", 0);

	if (pid <= 0 || pid > INT32_MAX)
		return 0;
	s->pid = (int)pid;
	return -EALREADY; /* enough: it runs on without us */
}

static int begun_data(void *ctx, const void *data, size_t len)
{
	struct agent_begun *s = ctx;

	return e2b_frames_feed(&s->frames, data, len, begun_message, s, &s->why);
}

static int begin_ask(struct cube_e2b *e, const struct e2b_box *box, const struct cube_buf *body,
		     struct cube_cancel *cancel, int *ret_pid, struct cube_err *err)
{
	struct agent_begun s = {.pid = 0};
	struct cube_http_answer answer;
	struct e2b_door door;
	int rc = e2b_door(e, box, "application/connect+json", &door, err);

	e2b_frames_init(&s.frames);
	cube_http_answer_init(&answer, 65536);
	if (rc == 0)
		rc = cube_http_run(e->data,
				   &(struct cube_http_call){.method = "POST",
							    .path = "/process.Process/Start",
							    .base = door.base,
							    .headers = door.headers,
							    .body = body->data,
							    .body_len = body->len,
							    .sink = begun_data,
							    .ctx = &s},
				   cancel, &answer, err);
	if (rc == 0)
		rc = e2b_envd_refused(box, "start the agent", answer.status, cube_buf_str(&answer.body),
				      answer.body.len, err);
	if (s.pid != 0)
		rc = 0;
	else if (s.why.code != 0)
		rc = cube_fail(err, s.why.code, "cannot start the agent in sandbox %s: %.250s", box->id,
			       s.why.text);
	else if (rc == 0)
		rc = cube_fail(err, -EREMOTEIO, "sandbox %s does not say that the agent has started",
			       box->id);
	if (rc == 0)
		*ret_pid = s.pid;
	cube_http_answer_done(&answer);
	e2b_frames_done(&s.frames);
	return rc;
}

static int agent_begin(struct cube_e2b *e, const struct e2b_box *box, struct cube_cancel *cancel,
		       int *ret_pid, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *message = json_pack(
		"{s:{s:s, s:[s, s, s, s], s:s}, s:s, s:b}", "process", "cmd", "/bin/sh", "args", "-c",
		AGENT_SCRIPT, "cubefs", e->agent_path, "cwd", "/", "tag", AGENT_TAG, "stdin", 1);
	struct cube_buf body = CUBE_BUF(65536);
	int rc = message != NULL ? e2b_frame(message, &body) : -ENOMEM;

	if (rc < 0)
		rc = cube_fail(err, rc, "out of memory");
	else
		rc = e2b_envd_put(e, box, e->agent_path, e->agent.data, e->agent.len, cancel, err);
	if (rc == 0)
		rc = begin_ask(e, box, &body, cancel, ret_pid, err);
	cube_buf_done(&body);
	return rc;
}

void e2b_agent_end(struct cube_e2b *e, const struct e2b_box *box, uint32_t grace_s,
		   struct cube_cancel *cancel)
{
	uint64_t end = cube_clock_mono() + grace_s * E2B_NS_PER_S;
	cube_auto(cube_json_auto) json_t *message = NULL;
	struct cube_err err = {0};
	int pid = 0, rc = agent_find(e, box, cancel, &pid, &err);

	if (rc == 0 && pid != 0) {
		message = json_pack("{s:{s:i}, s:s}", "process", "pid", pid, "signal", "SIGNAL_SIGTERM");
		rc = e2b_envd(e, box, "process.Process/SendSignal", message, "end the agent", cancel, NULL,
			      &err);
	}
	while (rc == 0 && pid != 0 && cube_clock_mono() < end) {
		rc = e2b_wait(AGENT_LOOK_MS, cancel, &err);
		if (rc == 0)
			rc = agent_find(e, box, cancel, &pid, &err);
	}
}

/* ---- the link ---- */

static int link_join(struct cube_e2b *e, const struct e2b_box *box, int pid,
		     const struct cube_link_handler *handler, void *ctx, struct cube_link **ret,
		     struct cube_err *err)
{
	struct cube_link *link = NULL;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return cube_fail_errno(err, "the link to sandbox %s", box->id);
	rc = cube_agent_link_new(e->loop, fds[0], false, handler, ctx, &link, err);
	if (rc < 0)
		(void)close(fds[0]);
	else
		rc = e2b_tunnel_new(e, box, pid, fds[1], err);
	if (rc == 0)
		cube_agent_link_set_still_clock(link);
	if (rc < 0) {
		(void)close(fds[1]);
		cube_link_close(link);
		return rc;
	}
	*ret = link;
	return 0;
}

int e2b_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
	     struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct e2b_box box;
	int pid = 0, rc = e2b_box_get(e, id, cancel, &o, &box, err);

	if (rc == 0 && strcmp(cube_json_str(o, "state", "running"), "running") != 0)
		rc = cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (rc == 0 && !box.fresh)
		rc = agent_find(e, &box, cancel, &pid, err);
	if (rc == 0 && pid == 0)
		rc = agent_begin(e, &box, cancel, &pid, err);
	if (rc < 0)
		return rc;
	e2b_box_fresh(e, id, false);
	return link_join(e, &box, pid, handler, ctx, ret, err);
}
