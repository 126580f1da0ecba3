/* SPDX-License-Identifier: Apache-2.0 */
/* A log of lines, in memory and in a file. */
#include "ctl/linelog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/err.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/state_priv.h"

#define LINELOG_ROOM (5u * CUBE_LINELOG_LINE) /* each byte may be escaped as four */

void cube_linelog_init(struct cube_linelog *l, size_t max)
{
	*l = (struct cube_linelog){.max = max};
	cube_buf_init(&l->text, max + LINELOG_ROOM);
}

void cube_linelog_done(struct cube_linelog *l)
{
	cube_buf_done(&l->text);
}

static void linelog_shorten(struct cube_linelog *l)
{
	while (l->text.len > l->max) {
		const char *end = memchr(l->text.data, '\n', l->text.len);

		cube_buf_drop(&l->text, end != NULL ? (size_t)(end + 1 - l->text.data) : l->text.len);
	}
	if (l->unkept > l->text.len)
		l->unkept = l->text.len;
}

void cube_linelog_add(struct cube_linelog *l, const char *line)
{
	char time[CUBE_TIME_TEXT];
	size_t before;

	linelog_shorten(l);
	before = l->text.len;
	cube_buf_printf(&l->text, "%s ", cube_clock_text(cube_clock_wall(), time));
	cube_buf_add_escaped(&l->text, line, strnlen(line, CUBE_LINELOG_LINE - CUBE_TIME_TEXT), false);
	cube_buf_addc(&l->text, '\n');
	l->unkept += l->text.len - before;
}

/* ---- on disk ---- */

static int linelog_append(struct cube_linelog *l, int dir, const char *name)
{
	cube_auto_fd fd = openat(dir, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno
		       : cube_file_write_all(fd, l->text.data + (l->text.len - l->unkept), l->unkept);

	if (r < 0 && fd >= 0 && ftruncate(fd, (off_t)l->file) < 0) /* half a line is none */
		cube_log(CUBE_LOG_WARNING, "ctl", "%s: half a line stays: %s", name, cube_errno_text(errno));
	return r;
}

void cube_linelog_keep(struct cube_linelog *l, int dir, const char *name)
{
	bool anew = l->file + l->unkept > 2 * l->max;

	if (l->unkept == 0)
		return;
	if ((anew ? cube_state_replace(dir, name, l->text.data, l->text.len) : linelog_append(l, dir, name)) <
	    0)
		return;
	l->file = anew ? l->text.len : l->file + l->unkept;
	l->unkept = 0;
}

/* The last bytes of the file, from the beginning of a line on. */
static void linelog_tail(struct cube_linelog *l, int fd, off_t size)
{
	size_t want = (size_t)size < l->max ? (size_t)size : l->max;
	struct cube_buf *text = &l->text;
	char *room = want > 0 ? cube_buf_reserve(text, want) : NULL;
	ssize_t n = room != NULL ? pread(fd, room, want, size - (off_t)want) : 0;
	const char *line;

	if (n <= 0)
		return;
	text->len += (size_t)n;
	if (text->data[text->len - 1] != '\n')
		cube_buf_addc(text, '\n');
	line = (off_t)n < size ? memchr(text->data, '\n', text->len) : NULL;
	cube_buf_drop(text, line != NULL ? (size_t)(line + 1 - text->data) : 0);
}

void cube_linelog_load(struct cube_linelog *l, int dir, const char *name)
{
	cube_auto_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	linelog_tail(l, fd, st.st_size);
	l->file = (size_t)st.st_size;
}
