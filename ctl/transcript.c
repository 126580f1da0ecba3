/* SPDX-License-Identifier: Apache-2.0 */
/* `logs`: text from many sources, made into whole lines with a time and the source in front. */
#include "ctl/transcript.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/clock.h"
#include "ctl/ring.h"

#define TRANSCRIPT_LINE    4096 /* a longer line is continued on the next */
#define TRANSCRIPT_PARTIAL 16   /* sources with an unfinished line at once; more are written as they are */

struct partial { /* the unfinished last line of a source */
	char source[48];
	struct cube_buf text;
};

struct cube_transcript {
	struct cube_ring ring;
	struct partial partial[TRANSCRIPT_PARTIAL];
};

int cube_transcript_open(int dir_fd, struct cube_transcript **ret, struct cube_err *err)
{
	struct cube_transcript *t = cube_calloc(1, sizeof(*t));
	int r;

	if (t == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < TRANSCRIPT_PARTIAL; i++)
		cube_buf_init(&t->partial[i].text, TRANSCRIPT_LINE);
	r = cube_ring_open(&t->ring, dir_fd, "log", CUBE_TRANSCRIPT_MAX, err);
	if (r < 0) {
		cube_transcript_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void cube_transcript_share(struct cube_transcript *t, struct cube_ring_set *set)
{
	cube_ring_share(&t->ring, set);
}

void cube_transcript_close(struct cube_transcript *t)
{
	if (t == NULL)
		return;
	for (unsigned i = 0; i < TRANSCRIPT_PARTIAL; i++)
		cube_buf_done(&t->partial[i].text);
	cube_ring_close(&t->ring);
	cube_free(t);
}

/* The place where the source's unfinished line is, or a free one if @make; NULL when there is none. */
static struct partial *transcript_partial(struct cube_transcript *t, const char *source, bool make)
{
	struct partial *room = NULL;

	for (unsigned i = 0; i < TRANSCRIPT_PARTIAL; i++) {
		struct partial *p = &t->partial[i];

		if (p->source[0] == '\0') {
			if (room == NULL)
				room = p;
		} else if (strcmp(p->source, source) == 0) {
			return p;
		}
	}
	if (!make || room == NULL || strlen(source) >= sizeof(room->source))
		return NULL;
	memcpy(room->source, source, strlen(source) + 1);
	return room;
}

static void transcript_line(struct cube_buf *out, const char *time, const char *source, const char *text,
			    size_t len)
{
	cube_buf_printf(out, "%s %s ", time, source);
	cube_buf_add_escaped(out, text, len, false);
	cube_buf_addc(out, '\n');
}

/* Takes one line (without its newline) or a full piece of one off *text; false when only a beginning is
 * there. */
static bool transcript_take(const char **text, size_t *len, size_t room, size_t *ret_len)
{
	const char *newline = memchr(*text, '\n', *len);
	size_t n = newline != NULL ? (size_t)(newline - *text) : *len;

	if (newline == NULL && n < room)
		return false;
	*ret_len = n < room ? n : room;
	return true;
}

static void transcript_flush(struct cube_buf *out, const char *time, struct partial *p)
{
	if (p == NULL)
		return;
	if (p->text.len > 0)
		transcript_line(out, time, p->source, p->text.data, p->text.len);
	cube_buf_done(&p->text);
	p->source[0] = '\0';
}

/* Completes the source's unfinished line with the beginning of *text. */
static void transcript_complete(struct cube_buf *out, const char *time, struct partial *p, const char **text,
				size_t *len)
{
	size_t room = TRANSCRIPT_LINE - p->text.len, n;

	if (!transcript_take(text, len, room, &n)) {
		cube_buf_add(&p->text, *text, *len);
		*len = 0;
		return;
	}
	cube_buf_add(&p->text, *text, n);
	if (n < *len && (*text)[n] == '\n')
		n++;
	*text += n;
	*len -= n;
	transcript_flush(out, time, p);
}

void cube_transcript_add(struct cube_transcript *t, const char *source, const char *text, size_t len,
			 bool final)
{
	struct cube_buf out = CUBE_BUF(16 * len + 4 * TRANSCRIPT_LINE + 4096);
	struct partial *p = transcript_partial(t, source, false);
	char time[CUBE_TIME_TEXT];
	size_t n;

	cube_clock_text(cube_clock_wall(), time);
	if (p != NULL && len > 0)
		transcript_complete(&out, time, p, &text, &len);
	while (len > 0 && transcript_take(&text, &len, TRANSCRIPT_LINE, &n)) {
		transcript_line(&out, time, source, text, n);
		if (n < len && text[n] == '\n')
			n++;
		text += n;
		len -= n;
	}
	if (len > 0) {
		p = transcript_partial(t, source, true);
		if (p != NULL)
			cube_buf_add(&p->text, text, len);
		else
			transcript_line(&out, time, source, text, len);
	}
	if (final)
		transcript_flush(&out, time, transcript_partial(t, source, false));
	if (out.len > 0)
		(void)cube_ring_add(&t->ring, out.data,
				    out.len); /* a full disk loses the transcript, nothing else */
	cube_buf_done(&out);
}

uint64_t cube_transcript_first(const struct cube_transcript *t)
{
	return t->ring.first;
}

uint64_t cube_transcript_end(const struct cube_transcript *t)
{
	return t->ring.end;
}

ssize_t cube_transcript_read(struct cube_transcript *t, uint64_t *pos, void *data, size_t len)
{
	return cube_ring_read(&t->ring, pos, data, len);
}

struct cube_waitq *cube_transcript_waitq(struct cube_transcript *t)
{
	return &t->ring.grown;
}
