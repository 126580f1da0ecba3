/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of what sandboxes use. */
#include "ctl/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/cube.h"

#define METRICS_BYTES (UINT64_C(128) << 10) /* of the 240 lines of an hour: more than they ever are */
#define METRICS_LINE  256

/* ---- the ring ---- */

void cube_metrics_init(struct cube_cube *c)
{
	c->metrics.ring.fd = -1;
	cube_waitq_init(&c->metrics.added);
}

void cube_metrics_close(struct cube_cube *c)
{
	cube_ring_close(&c->metrics.ring);
}

/* By the first who wants it: a sandbox that never ran needs none. */
static bool metrics_open(struct cube_cube *c)
{
	struct cube_err err = {0};

	if (c->metrics.ring.fd >= 0)
		return true;
	if (c->dir_fd < 0 || c->phase == CUBE_REMOVED)
		return false;
	if (cube_ring_open(&c->metrics.ring, c->dir_fd, "metrics", METRICS_BYTES, &err) < 0) {
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
		cube_ring_close(&c->metrics.ring);
		return false;
	}
	return true;
}

/* Where the line at @at ends, in *ret_next; its time. false: no whole line. */
static bool metrics_line(struct cube_ring *r, uint64_t at, uint64_t *ret_next, uint64_t *ret_wall)
{
	char line[METRICS_LINE], *end;
	uint64_t pos = at;
	ssize_t n = cube_ring_read(r, &pos, line, sizeof(line) - 1);

	if (n <= 0)
		return false;
	line[n] = '\0';
	end = strchr(line, '\n');
	if (end == NULL)
		return false;
	*ret_next = at + (uint64_t)(end + 1 - line);
	line[strcspn(line, " \n")] = '\0';
	if (cube_clock_parse(line, ret_wall) < 0)
		*ret_wall = 0;
	return true;
}

static void metrics_trim(struct cube_cube *c)
{
	struct cube_ring *r = &c->metrics.ring;
	uint64_t now = cube_clock_wall(), next, wall, first = r->first;

	while (metrics_line(r, first, &next, &wall) && wall + CUBE_METRICS_S * UINT64_C(1000000000) < now)
		first = next;
	if (first != r->first)
		cube_ring_trim(r, first);
}

uint64_t cube_metrics_first(struct cube_cube *c)
{
	if (!metrics_open(c))
		return 0;
	metrics_trim(c);
	return c->metrics.ring.first;
}

uint64_t cube_metrics_end(const struct cube_cube *c)
{
	return c->metrics.ring.fd >= 0 ? c->metrics.ring.end : 0;
}

ssize_t cube_metrics_read(struct cube_cube *c, uint64_t *pos, void *data, size_t len)
{
	return c->metrics.ring.fd >= 0 ? cube_ring_read(&c->metrics.ring, pos, data, len) : 0;
}

/* ---- a sample ---- */

static void metrics_number(struct cube_buf *line, uint64_t n, bool known)
{
	if (known)
		cube_buf_printf(line, " %" PRIu64, n);
	else
		cube_buf_adds(line, " -");
}

void cube_metrics_add(struct cube_cube *c)
{
	struct cube_buf line = CUBE_BUF(METRICS_LINE - 1);
	const struct cube_usage *u = &c->usage;
	char time[CUBE_TIME_TEXT];

	cube_buf_adds(&line, cube_clock_text(c->usage_wall, time));
	if (u->cpu_ns != UINT64_MAX)
		cube_buf_printf(&line, " %" PRIu64 ".%03u", u->cpu_ns / 1000000000,
				(unsigned)(u->cpu_ns / 1000000 % 1000));
	else
		cube_buf_adds(&line, " -");
	metrics_number(&line, u->memory, u->memory != UINT64_MAX);
	metrics_number(&line, c->limits.memory, c->limits.memory != 0);
	metrics_number(&line, u->disk, u->disk != UINT64_MAX);
	metrics_number(&line, c->limits.disk, c->limits.disk != 0);
	metrics_number(&line, u->pids, u->pids != UINT64_MAX);
	metrics_number(&line, u->net_in, u->net_in != UINT64_MAX);
	metrics_number(&line, u->net_out, u->net_out != UINT64_MAX);
	cube_buf_addc(&line, '\n');
	if (line.error == 0 && metrics_open(c) && cube_ring_add(&c->metrics.ring, line.data, line.len) == 0) {
		metrics_trim(c);
		cube_wake(&c->metrics.added);
	}
	cube_buf_done(&line);
}

/* ---- all of them, in turn ---- */

static bool metrics_wanted(const struct cube_cube *c)
{
	return c->phase == CUBE_RUNNING && c->service->backend->caps & CUBE_CAP_USAGE;
}

/* Asks for the next batch behind the last one asked; how many there are in all. */
static unsigned metrics_round(struct cube_domain_own *own)
{
	uint64_t last = own->metrics_at, highest = 0;
	unsigned all = 0, asked = 0;

	cube_list_each (i, &own->d.cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (!metrics_wanted(c))
			continue;
		all++;
		highest = c->seq;
		if (c->seq <= last || asked == CUBE_METRICS_BATCH)
			continue;
		asked++;
		own->metrics_at = c->seq;
		cube_usage_sample(c);
	}
	if (own->metrics_at >= highest)
		own->metrics_at = 0; /* from the first again */
	return all;
}

void cube_metrics_due(struct cube_alarm *a)
{
	struct cube_domain_own *own = cube_container_of(a, struct cube_domain_own, metrics);
	unsigned rounds = (metrics_round(own) + CUBE_METRICS_BATCH - 1) / CUBE_METRICS_BATCH;

	if (rounds > 0 && !own->d.closing)
		cube_alarm_set(&own->d, a, CUBE_METRICS_MS / rounds);
}

void cube_metrics_begin(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);

	if (!d->closing && !cube_alarm_is_on(&own->metrics))
		cube_alarm_set(d, &own->metrics, 1000); /* soon: it is something to look at */
}
