/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as objects: made, removed, kept on disk, what is asked of them. */
#include "ctl/stock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/num.h"
#include "ctl/bytes.h"
#include "ctl/errlog.h"
#include "ctl/linelog.h"
#include "ctl/stock_priv.h"
#include "ctl/words.h"

#define STOCK_LOG_MAX  ((size_t)64 << 10)
#define STOCK_LOGS     ".logs"
#define STOCK_FILE_MAX (2 * CUBE_TEXT_MAX)

/* ---- The object ---- */

static void stock_again(struct cube_alarm *a)
{
	cube_stock_kick(cube_container_of(a, struct cube_stock, again));
}

static struct cube_stock *stock_new(struct cube_service *s, const char *name)
{
	struct cube_stock *p = cube_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->refs = 1;
	p->service = s;
	p->template = cube_strdup("");
	if (p->template == NULL) {
		cube_free(p);
		return NULL;
	}
	p->seq = s->domain->next_seq++;
	p->born_wall = cube_clock_wall();
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	cube_list_init(&p->cubes);
	cube_alarm_init(&p->again, stock_again);
	cube_linelog_init(&p->log, STOCK_LOG_MAX);
	cube_waitq_init(&p->changed);
	cube_list_push(&s->stocks, &p->link);
	return p;
}

struct cube_stock *cube_stock_ref(struct cube_stock *p)
{
	p->refs++;
	return p;
}

void cube_stock_unref(struct cube_stock *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	cube_alarm_off(&p->again);
	cube_linelog_done(&p->log);
	cube_free(p->template);
	cube_free(p);
}

static void stock_delist(struct cube_stock *p)
{
	cube_list_remove(&p->link);
	cube_alarm_off(&p->again);
	p->removed = true;
	cube_wake(&p->changed);
	cube_stock_unref(p);
}

/* The kept ones are the domain's to drop. */
void cube_stocks_close(struct cube_service *s)
{
	while (!cube_list_empty(&s->stocks))
		stock_delist(cube_list_entry(s->stocks.next, struct cube_stock, link));
}

struct cube_stock *cube_stock_find(struct cube_service *s, const char *name)
{
	cube_list_each (i, &s->stocks) {
		struct cube_stock *p = cube_list_entry(i, struct cube_stock, link);

		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

struct cube_stock *cube_stock_next(struct cube_service *s, uint64_t seq)
{
	cube_list_each (i, &s->stocks) {
		struct cube_stock *p = cube_list_entry(i, struct cube_stock, link);

		if (p->seq > seq)
			return p;
	}
	return NULL;
}

void cube_stocks_each(struct cube_domain *d, void (*fn)(struct cube_cube *c))
{
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		cube_list_each (k, &s->stocks) {
			struct cube_stock *p = cube_list_entry(k, struct cube_stock, link);

			cube_list_each (n, &p->cubes)
				fn(cube_list_entry(n, struct cube_cube, link));
		}
	}
}

/* ---- On disk: STATE/pools/BACKEND/NAME ---- */

static int stock_dir(struct cube_service *s)
{
	int all = -1, dir = -1;
	int r = cube_file_mkdir(s->domain->state_fd, "pools", 0700, &all);

	if (r == 0)
		r = cube_file_mkdir(all, s->backend->name, 0700, &dir);
	cube_close_auto(&all);
	return r < 0 ? r : dir;
}

/* Apart from the pools, since they may have any name that a log may have. */
static int stock_logs(struct cube_service *s)
{
	cube_auto_fd all = stock_dir(s);
	int dir = -1;
	int r = all < 0 ? all : cube_file_mkdir(all, STOCK_LOGS, 0700, &dir);

	return r < 0 ? r : dir;
}

void cube_stock_say(struct cube_stock *p, const char *fmt, ...)
{
	char line[CUBE_LINELOG_LINE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	cube_linelog_add(&p->log, line);
	if (p->removed)
		return;
	cube_auto_fd logs = stock_logs(p->service);
	if (logs >= 0)
		cube_linelog_keep(&p->log, logs, p->name);
}

static int stock_write(struct cube_stock *p)
{
	cube_auto(cube_json_auto) json_t *o = json_pack(
		"{s:o,s:I,s:I,s:I,s:b}", "template", cube_bytes_json(p->template, strlen(p->template)),
		"revision", (json_int_t)p->revision, "min", (json_int_t)p->min, "max", (json_int_t)p->max,
		"drained", (int)p->drained);
	struct cube_buf text = CUBE_BUF(STOCK_FILE_MAX);
	cube_auto_fd dir = stock_dir(p->service);
	int r = dir;

	if (r >= 0)
		r = o != NULL ? cube_json_write(o, &text) : -ENOMEM;
	if (r == 0)
		r = cube_file_replace(dir, p->name, text.data, text.len, 0600);
	cube_buf_done(&text);
	return r;
}

static int stock_save(struct cube_stock *p, struct cube_err *err)
{
	int r = stock_write(p);

	return r < 0 ? cube_fail(err, r, "pool '%s': its state: %s", p->name, cube_errno_text(r)) : 0;
}

static int stock_read(int dir, struct cube_stock *p, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_buf text = CUBE_BUF(STOCK_FILE_MAX);
	int r = cube_file_read(dir, p->name, &text);

	if (r < 0)
		(void)cube_fail(err, r, "%s", cube_errno_text(r));
	else
		r = cube_json_parse(cube_buf_str(&text), text.len, p->name, &o, err);
	cube_buf_done(&text);
	if (r < 0)
		return r;
	cube_auto_str template = cube_bytes_dup(o, "template");
	if (template == NULL)
		return cube_fail(err, -EINVAL, "it has no template");
	cube_free(p->template);
	p->template = cube_steal(template);
	p->revision = (uint64_t)cube_json_int(o, "revision", 0);
	p->min = (uint32_t)cube_json_int(o, "min", 0);
	p->max = (uint32_t)cube_json_int(o, "max", 0);
	p->drained = cube_json_bool(o, "drained", false);
	if (p->max > CUBE_STOCK_MAX || p->min > p->max)
		return cube_fail(err, -EINVAL, "its size is %u to %u", p->min, p->max);
	return 0;
}

/* One that cannot be read keeps nothing: what was kept for it is destroyed, as by rmdir. */
static int stock_load(struct cube_service *s, int dir, const char *name)
{
	struct cube_err err = {0};
	struct cube_stock *p;

	if (!cube_name_ok(name))
		return 0; /* a file that was being replaced */
	p = stock_new(s, name);
	if (p == NULL)
		return -ENOMEM;
	cube_auto_fd logs = stock_logs(s);
	if (logs >= 0)
		cube_linelog_load(&p->log, logs, name);
	if (stock_read(dir, p, &err) < 0) {
		p->min = p->max = 0;
		p->failure = err;
		(void)cube_fail_in(&err, "pool '%s' of backend '%s' in the state directory", name,
				   s->backend->name);
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
		cube_errlog_add(s->domain->errors, NULL, "load", &err);
	}
	return 0;
}

int cube_stocks_load(struct cube_domain *d, struct cube_service *s, struct cube_err *err)
{
	cube_auto_fd at = stock_dir(s);
	int fd = at >= 0 ? openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int r = 0;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return cube_fail(err, at < 0 ? at : -errno, "state directory '%s/pools': %s", d->state_dir,
				 cube_errno_text(at < 0 ? at : -errno));
	}
	while (r == 0 && (e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		r = stock_load(s, at, e->d_name);
	(void)closedir(dir);
	return r < 0 ? cube_fail(err, r, "backend '%s': out of memory", s->backend->name) : 0;
}

/* ---- mkdir, rmdir ---- */

int cube_stock_create(struct cube_service *s, const char *name, struct cube_stock **ret, struct cube_err *err)
{
	struct cube_stock *p;

	if (!cube_name_ok(name) || strcmp(name, CUBE_STOCK_COLD) == 0)
		return cube_fail(err, -EINVAL,
				 "'%s' is no name for a pool: 1 to %d of A-Z a-z 0-9 . _ -, no . or - in "
				 "front, and not '%s'",
				 name, CUBE_NAME_MAX, CUBE_STOCK_COLD);
	if (cube_stock_find(s, name) != NULL)
		return cube_fail(err, -EEXIST, "backend '%s' has a pool '%s' already", s->backend->name,
				 name);
	p = stock_new(s, name);
	if (p == NULL)
		return cube_fail(err, -ENOMEM, "pool '%s': out of memory", name);
	int r = stock_save(p, err);
	if (r < 0) {
		stock_delist(p);
		return r;
	}
	*ret = p;
	return 0;
}

int cube_stock_remove(struct cube_stock *p, struct cube_err *err)
{
	cube_auto_fd dir = -1;

	if (p->removed)
		return cube_fail(err, -ENOENT, "pool '%s' is removed already", p->name);
	dir = stock_dir(p->service);
	if (dir < 0)
		return cube_fail(err, dir, "pool '%s': its state: %s", p->name, cube_errno_text(dir));
	if (unlinkat(dir, p->name, 0) < 0 && errno != ENOENT)
		return cube_fail_errno(err, "pool '%s': its state", p->name);
	p->max = p->min = 0;
	cube_stock_kick(p); /* what it keeps goes */
	cube_auto_fd logs = stock_logs(p->service);
	if (logs >= 0)
		(void)unlinkat(logs, p->name, 0);
	stock_delist(p);
	return 0;
}

/* ---- What is asked of it ---- */

int cube_stock_check_template(struct cube_stock *p, const char *text, struct cube_err *err)
{
	struct cube_stock_order order;
	int r = cube_stock_order_template(p, text, &order, err);

	if (r == 0)
		r = cube_create_check(p->service->domain, order.keys, order.n, err);
	cube_stock_order_done(&order);
	return r < 0 ? cube_fail_in(err, "pool '%s'", p->name) : 0;
}

int cube_stock_set_template(struct cube_stock *p, const char *text, struct cube_err *err)
{
	char *old = p->template;
	int r = p->removed ? cube_fail(err, -ENOENT, "pool '%s' is removed", p->name)
			   : cube_stock_check_template(p, text, err);

	if (r < 0)
		return r;
	p->template = cube_strdup(text);
	if (p->template == NULL) {
		p->template = old;
		return cube_fail(err, -ENOMEM, "pool '%s': out of memory", p->name);
	}
	p->revision++;
	r = stock_save(p, err);
	if (r < 0) {
		cube_free(p->template);
		p->template = old;
		p->revision--;
		return r;
	}
	cube_free(old);
	cube_stock_say(p, "template %s", p->template);
	p->failures = 0;
	cube_alarm_off(&p->again);
	cube_stock_kick(p);
	return 0;
}

int cube_stock_check_size(const char *text, uint32_t *ret_min, uint32_t *ret_max, struct cube_err *err)
{
	cube_auto(cube_free_auto) char **words = NULL;
	unsigned n = 0;
	uint64_t min, max;
	int r = cube_words_split(text, strlen(text), &words, &n, err);

	if (r < 0)
		return r;
	if (n < 1 || n > 2 || cube_num_u64(words[0], CUBE_STOCK_MAX, &min) < 0 ||
	    cube_num_u64(words[n - 1], CUBE_STOCK_MAX, &max) < 0)
		return cube_fail(err, -EINVAL, "size '%.64s': a number from 0 to %u, or MIN MAX", text,
				 CUBE_STOCK_MAX);
	if (min > max)
		return cube_fail(err, -EINVAL, "size '%.64s': MIN is above MAX", text);
	*ret_min = (uint32_t)min;
	*ret_max = (uint32_t)max;
	return 0;
}

int cube_stock_set_size(struct cube_stock *p, const char *text, struct cube_err *err)
{
	uint32_t min = p->min, max = p->max;
	int r = p->removed ? cube_fail(err, -ENOENT, "pool '%s' is removed", p->name)
			   : cube_stock_check_size(text, &p->min, &p->max, err);

	if (r == 0)
		r = stock_save(p, err);
	if (r < 0) {
		p->min = min;
		p->max = max;
		return r;
	}
	cube_stock_say(p, "size %s", text);
	p->filling = true; /* also from min upwards */
	cube_stock_kick(p);
	return 0;
}

static int stock_set_drained(struct cube_stock *p, bool drained, struct cube_err *err)
{
	bool before = p->drained;

	p->drained = drained;
	int r = before == drained ? 0 : stock_save(p, err);
	if (r < 0)
		p->drained = before;
	return r;
}

int cube_stock_drain(struct cube_stock *p, struct cube_err *err)
{
	int r = stock_set_drained(p, true, err);

	if (r < 0)
		return r;
	cube_stock_say(p, "drain");
	cube_stock_kick(p);
	return 0;
}

int cube_stock_refill(struct cube_stock *p, struct cube_err *err)
{
	int r = stock_set_drained(p, false, err);

	if (r < 0)
		return r;
	cube_stock_say(p, "refill");
	p->failures = 0;
	p->failure = (struct cube_err){0};
	p->filling = true;
	cube_alarm_off(&p->again);
	cube_stock_kick(p);
	return 0;
}
