/* SPDX-License-Identifier: Apache-2.0 */
/* `services` of a template: what its sandboxes expose from the start, and under which names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl_priv.h"

#define SERVICES_MAX 64u

struct service_line {
	char word[CUBE_NAME_MAX + 1]; /* `name WORD` of the port; "" at an empty line */
	char port[512];
};

/* The next line behind *at: 1, 0 at the end, -EINVAL for what is no NAME PORT. */
static int services_next(const char *text, size_t len, size_t *at, struct service_line *ret)
{
	const char *line = text + *at, *end, *blank;
	size_t n, word;

	*ret = (struct service_line){.word = ""};
	if (*at >= len)
		return 0;
	end = memchr(line, '\n', len - *at);
	n = end != NULL ? (size_t)(end - line) : len - *at;
	*at += n + 1;
	if (n == 0)
		return 1;
	blank = memchr(line, ' ', n);
	if (blank == NULL)
		return -EINVAL;
	word = (size_t)(blank - line);
	if (word >= sizeof(ret->word) || n - word - 1 >= sizeof(ret->port))
		return -EINVAL;
	memcpy(ret->word, line, word);
	memcpy(ret->port, blank + 1, n - word - 1);
	return cube_name_ok(ret->word) ? 1 : -EINVAL;
}

/* Is the name or the port of @l in a line before @end? */
static bool services_twice(const char *text, size_t end, const struct service_line *l)
{
	struct service_line other;
	size_t at = 0;

	while (at < end && services_next(text, end, &at, &other) > 0)
		if (strcmp(other.word, l->word) == 0 || strcmp(other.port, l->port) == 0)
			return true;
	return false;
}

static int services_check_line(const char *text, size_t from, int r, const struct service_line *l,
			       unsigned number, struct cube_err *err)
{
	struct cube_target target;

	if (r < 0)
		return cube_fail(err, r,
				 "line %u: no NAME PORT: a name of 1 to %d of A-Z a-z 0-9 . _ -, a blank, a "
				 "port as in ports/",
				 number, CUBE_NAME_MAX);
	r = cube_port_parse(l->port, &target, err);
	if (r < 0)
		return cube_fail_in(err, "line %u", number);
	if (services_twice(text, from, l))
		return cube_fail(err, -EINVAL, "line %u: '%s' or '%s' is in a line above already", number,
				 l->word, l->port);
	return 0;
}

int cube_services_check(const char *text, size_t len, bool final, struct cube_err *err)
{
	struct service_line l;
	unsigned number = 0, count = 0;
	size_t at = 0, from = 0;
	int r, ok = 0;

	while (ok == 0 && (r = services_next(text, len, &at, &l)) != 0) {
		number++;
		if (at > len && !final) /* it is not complete yet */
			break;
		if (r < 0 || l.word[0] != '\0') {
			ok = services_check_line(text, from, r, &l, number, err);
			count++;
		}
		if (ok == 0 && count > SERVICES_MAX)
			ok = cube_fail(err, -EINVAL, "more than %u services", SERVICES_MAX);
		from = at;
	}
	return ok;
}

/* One that the create line exposes as well keeps what it has. */
static int services_expose(struct cube_cube *c, const struct service_line *l, struct cube_err *err)
{
	struct cube_port *p = cube_port_find(c, l->port);
	int r = p == NULL ? cube_port_create(c, l->port, &p, err) : 0;

	if (r == 0 && p->word[0] == '\0')
		r = cube_port_set_word(p, l->word, err);
	return r;
}

int cube_services_start(struct cube_cube *c, const struct cube_template_entry *t, struct cube_err *err)
{
	const struct cube_buf *text = &t->texts[CUBE_TEMPLATE_SERVICES];
	struct service_line l;
	size_t at = 0;
	int r = 0;

	while (r == 0 && services_next(cube_buf_str(text), text->len, &at, &l) > 0)
		if (l.word[0] != '\0')
			r = services_expose(c, &l, err);
	return r < 0 ? cube_fail_in(err, "services of template '%s'", t->info.name) : 0;
}
