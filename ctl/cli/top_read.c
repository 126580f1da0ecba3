/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the mount for `cubefs top`. */
#include "ctl/cli/top_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define READ_LIST_MAX   ((size_t)64 << 20)
#define READ_STATUS_MAX ((size_t)64 << 10)
#define READ_EACH       500u /* sandboxes of which the status is read too; of more, what `list` says is shown */
#define READ_ACTIONS    16u /* at once */

struct top_reader {
	char *mount;
	uint32_t ms;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	bool again;
	/* the newest */
	struct top_table table;
	bool fresh;
	struct cube_err err;
	uint64_t answered; /* mono, when a round ended */
	/* actions */
	unsigned acting;
	char news[CUBE_ERR_TEXT + 128];
};

/* ---- The tables ---- */

static int read_file(const char *dir, const char *name, struct cube_buf *out, struct cube_err *err)
{
	cube_auto_str path = cube_asprintf("%s/%s", dir, name);
	int r = path != NULL ? cube_file_read(AT_FDCWD, path, out) : -ENOMEM;

	return r < 0 ? cube_fail(err, r, "%s/%s: %s", dir, name, cube_errno_text(r)) : 0;
}

static void read_status(const struct top_reader *r, struct top_row *row)
{
	struct cube_buf text = CUBE_BUF(READ_STATUS_MAX);
	char name[CUBE_NAME_MAX + 16];

	(void)snprintf(name, sizeof(name), "%s/status", row->name);
	if (read_file(r->mount, name, &text, NULL) == 0) /* else it has gone meanwhile */
		top_parse_status(cube_buf_str(&text), row);
	cube_buf_done(&text);
}

static int read_table(const struct top_reader *r, const struct top_table *before, struct top_table *ret,
		      struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(READ_LIST_MAX);
	int code = read_file(r->mount, "list", &text, err);

	if (code == 0 && top_parse_list(cube_buf_str(&text), ret) < 0)
		code = cube_fail(err, -ENOMEM, "out of memory");
	cube_buf_done(&text);
	if (code < 0)
		return code;
	for (size_t i = 0; ret->n <= READ_EACH && i < ret->n; i++)
		read_status(r, &ret->rows[i]);
	top_rates(ret, before);
	return 0;
}

static int table_copy(const struct top_table *from, struct top_table *ret)
{
	ret->n = 0;
	ret->rows = cube_calloc(from->n + 1, sizeof(*ret->rows));
	if (ret->rows == NULL)
		return -ENOMEM;
	if (from->n > 0)
		memcpy(ret->rows, from->rows, from->n * sizeof(*ret->rows));
	ret->n = from->n;
	return 0;
}

static void read_publish(struct top_reader *r, const struct top_table *t, int code,
			 const struct cube_err *err)
{
	struct top_table copy = {0};

	pthread_mutex_lock(&r->lock);
	r->answered = cube_clock_mono();
	r->err = code < 0 ? *err : (struct cube_err){0};
	if (code == 0 && table_copy(t, &copy) == 0) {
		top_free(&r->table);
		r->table = copy;
		r->fresh = true;
	}
	pthread_mutex_unlock(&r->lock);
}

static void read_sleep(struct top_reader *r)
{
	uint64_t until = cube_clock_mono() + r->ms * UINT64_C(1000000);
	struct timespec at = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
	int late = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->again && late == 0)
		late = pthread_cond_timedwait(&r->woken, &r->lock, &at);
	r->again = false;
	pthread_mutex_unlock(&r->lock);
}

static void *read_run(void *ctx)
{
	struct top_reader *r = ctx;
	struct top_table before = {0};

	for (;;) {
		struct top_table now = {0};
		struct cube_err err = {0};
		int code = read_table(r, &before, &now, &err);

		read_publish(r, &now, code, &err);
		if (code == 0) {
			top_free(&before);
			before = now;
		}
		read_sleep(r);
	}
	return NULL;
}

struct top_reader *top_reader_start(const char *mount, uint32_t ms, struct cube_err *err)
{
	struct top_reader *r = cube_calloc(1, sizeof(*r));
	pthread_condattr_t attr;
	pthread_t thread;

	if (r != NULL)
		r->mount = cube_strdup(mount);
	if (r == NULL || r->mount == NULL) {
		cube_free(r);
		(void)cube_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	r->ms = ms;
	r->answered = cube_clock_mono();
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->woken, &attr);
	pthread_condattr_destroy(&attr);
	int code = pthread_create(&thread, NULL, read_run, r);
	if (code != 0) {
		(void)cube_fail(err, -code, "a thread: %s", cube_errno_text(-code));
		cube_free(r->mount);
		cube_free(r);
		return NULL;
	}
	(void)pthread_detach(thread);
	return r;
}

void top_reader_again(struct top_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->again = true;
	pthread_cond_signal(&r->woken);
	pthread_mutex_unlock(&r->lock);
}

bool top_reader_take(struct top_reader *r, struct top_table *ret, struct cube_err *ret_err,
		     uint64_t *ret_silent_ms)
{
	bool fresh;

	pthread_mutex_lock(&r->lock);
	fresh = r->fresh;
	r->fresh = false;
	*ret_err = r->err;
	*ret_silent_ms = (cube_clock_mono() - r->answered) / 1000000;
	if (fresh) {
		*ret = r->table;
		r->table = (struct top_table){0};
	}
	pthread_mutex_unlock(&r->lock);
	return fresh;
}

/* ---- Verbs ---- */

struct action {
	struct top_reader *reader;
	char name[CUBE_NAME_MAX + 1];
	char verb[32]; /* "": remove it */
};

static int action_write(const char *path, const char *verb)
{
	cube_auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	char line[40];

	if (fd < 0)
		return -errno;
	(void)snprintf(line, sizeof(line), "%s\n", verb);
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

static int action_do(const struct action *a)
{
	cube_auto_str path =
		cube_asprintf("%s/%s%s", a->reader->mount, a->name, a->verb[0] != '\0' ? "/ctl" : "");

	if (path == NULL)
		return -ENOMEM;
	if (a->verb[0] != '\0')
		return action_write(path, a->verb);
	return rmdir(path) < 0 ? -errno : 0;
}

/* The sentence of the last failure: TIME PROCESS OPERATION ERRNO: SENTENCE. */
static void action_why(const struct action *a, int code, char *out, size_t size)
{
	struct cube_buf text = CUBE_BUF((size_t)1 << 20);
	char file[CUBE_NAME_MAX + 16], mark[32];
	const char *at = NULL;

	(void)snprintf(file, sizeof(file), "%s/error", a->name);
	(void)snprintf(mark, sizeof(mark), " %s: ", cube_errno_name(code));
	if (read_file(a->reader->mount, file, &text, NULL) == 0)
		for (const char *next = cube_buf_str(&text); (next = strstr(next, mark)) != NULL;)
			at = next += strlen(mark);
	(void)snprintf(out, size, "%.*s", at != NULL ? (int)strcspn(at, "\n") : 200,
		       at != NULL ? at : cube_errno_text(code));
	cube_buf_done(&text);
}

static void *action_run(void *ctx)
{
	struct action *a = ctx;
	struct top_reader *r = a->reader;
	const char *what = a->verb[0] != '\0' ? a->verb : "end";
	char why[CUBE_ERR_TEXT] = "done";
	int code = action_do(a);

	if (code < 0)
		action_why(a, code, why, sizeof(why));
	pthread_mutex_lock(&r->lock);
	r->acting--;
	(void)snprintf(r->news, sizeof(r->news), "%s %s: %s", what, a->name, why);
	pthread_mutex_unlock(&r->lock);
	cube_free(a);
	top_reader_again(r);
	return NULL;
}

void top_reader_act(struct top_reader *r, const char *name, const char *verb)
{
	struct action *a = cube_calloc(1, sizeof(*a));
	pthread_t thread;
	bool room;

	pthread_mutex_lock(&r->lock);
	room = a != NULL && r->acting < READ_ACTIONS;
	if (room)
		r->acting++;
	else
		(void)snprintf(r->news, sizeof(r->news), "%s: too much is under way", name);
	pthread_mutex_unlock(&r->lock);
	if (!room) {
		cube_free(a);
		return;
	}
	a->reader = r;
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	(void)snprintf(a->verb, sizeof(a->verb), "%s", verb != NULL ? verb : "");
	if (pthread_create(&thread, NULL, action_run, a) == 0) {
		(void)pthread_detach(thread);
		return;
	}
	pthread_mutex_lock(&r->lock);
	r->acting--;
	pthread_mutex_unlock(&r->lock);
	cube_free(a);
}

void top_reader_news(struct top_reader *r, char *out, size_t size)
{
	pthread_mutex_lock(&r->lock);
	(void)snprintf(out, size, "%s", r->news);
	r->news[0] = '\0';
	pthread_mutex_unlock(&r->lock);
}
