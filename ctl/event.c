/* SPDX-License-Identifier: Apache-2.0 */
/* The last events: JSON lines in a ring on disk, with an index of where the kept ones begin. */
#include "ctl/event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/json.h"
#include "ctl/ring.h"

#define EVENT_BYTES  (UINT64_C(8) << 20) /* of 10,000 lines: 800 bytes each are more than any event has */
#define EVENT_DETAIL 512

struct cube_events {
	struct cube_ring ring;
	uint64_t starts[CUBE_EVENTS_KEPT]; /* positions of the kept lines, a ring itself */
	unsigned next, count;
};

static void event_index(struct cube_events *e, uint64_t start)
{
	e->starts[e->next] = start;
	e->next = (e->next + 1) % CUBE_EVENTS_KEPT;
	if (e->count < CUBE_EVENTS_KEPT)
		e->count++;
}

static uint64_t event_oldest(const struct cube_events *e)
{
	if (e->count == 0)
		return e->ring.end;
	return e->starts[(e->next + CUBE_EVENTS_KEPT - e->count) % CUBE_EVENTS_KEPT];
}

/* Find the lines that an earlier daemon left. */
static void event_load(struct cube_events *e)
{
	uint64_t pos = e->ring.first, start = pos;
	char block[16384];
	ssize_t n;

	while ((n = cube_ring_read(&e->ring, &pos, block, sizeof(block))) > 0) {
		uint64_t at = pos - (uint64_t)n;

		for (ssize_t i = 0; i < n; i++) {
			if (block[i] != '\n')
				continue;
			event_index(e, start);
			start = at + (uint64_t)i + 1;
		}
	}
}

int cube_events_open(int dir_fd, struct cube_events **ret, struct cube_err *err)
{
	struct cube_events *e = cube_calloc(1, sizeof(*e));
	int r;

	if (e == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = cube_ring_open(&e->ring, dir_fd, "events", EVENT_BYTES, err);
	if (r < 0) {
		cube_events_close(e);
		return r;
	}
	event_load(e);
	*ret = e;
	return 0;
}

void cube_events_close(struct cube_events *e)
{
	if (e == NULL)
		return;
	cube_ring_close(&e->ring);
	cube_free(e);
}

static void event_member(json_t *o, const char *key, const char *value)
{
	if (value != NULL)
		(void)json_object_set_new(o, key, cube_json_bytes(value, strlen(value)));
}

void cube_event(struct cube_events *e, const char *sandbox, const char *event, const char *fmt, ...)
{
	cube_auto(cube_json_auto) json_t *o = json_object();
	struct cube_buf line = CUBE_BUF(4096);
	char time[CUBE_TIME_TEXT], detail[EVENT_DETAIL];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	event_member(o, "time", cube_clock_text(cube_clock_wall(), time));
	event_member(o, "sandbox", sandbox);
	event_member(o, "event", event);
	if (detail[0] != '\0')
		event_member(o, "detail", detail);
	if (o != NULL && cube_json_write(o, &line) == 0 && cube_buf_addc(&line, '\n') == 0) {
		event_index(e, e->ring.end);
		/* A full disk loses the event, not the operation that it tells of. */
		if (cube_ring_add(&e->ring, line.data, line.len) < 0) {
			e->next = (e->next + CUBE_EVENTS_KEPT - 1) % CUBE_EVENTS_KEPT;
			e->count--;
		}
	}
	cube_buf_done(&line);
}

uint64_t cube_events_first(const struct cube_events *e)
{
	uint64_t oldest = event_oldest(e);

	return oldest > e->ring.first ? oldest : e->ring.first;
}

uint64_t cube_events_end(const struct cube_events *e)
{
	return e->ring.end;
}

ssize_t cube_events_read(struct cube_events *e, uint64_t *pos, void *data, size_t len)
{
	uint64_t first = cube_events_first(e);

	if (*pos < first)
		*pos = first;
	return cube_ring_read(&e->ring, pos, data, len);
}

struct cube_waitq *cube_events_waitq(struct cube_events *e)
{
	return &e->ring.grown;
}
