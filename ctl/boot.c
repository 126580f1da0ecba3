/* SPDX-License-Identifier: Apache-2.0 */
/* What a template asks for at each boot of a sandbox made of it: `start` is run, and the sandbox is usable when
 * `ready` is so. Both are jobs of the sandbox, the only ones that run before it is handed to anybody. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"

#define BOOT_PORT "port "
#define BOOT_HTTP "http "

/* ---- what `ready` may be ---- */

/* The word behind @what; NULL: it is not of that form. Without the newline, in @out. */
static const char *ready_word(const char *text, size_t len, const char *what, char *out, size_t size)
{
	size_t skip = strlen(what);

	if (len <= skip || strncmp(text, what, skip) != 0)
		return NULL;
	(void)snprintf(out, size, "%.*s", (int)strcspn(text + skip, "\n"), text + skip);
	return out;
}

int cube_boot_check(const char *text, size_t len, struct cube_err *err)
{
	char word[1024];
	uint64_t port;

	if (ready_word(text, len, BOOT_PORT, word, sizeof(word)) != NULL &&
	    (cube_num_u64(word, 65535, &port) < 0 || port == 0))
		return cube_fail(err, -EINVAL, "'%s' is no port: 1 to 65535", word);
	if (ready_word(text, len, BOOT_HTTP, word, sizeof(word)) != NULL &&
	    ((strncmp(word, "http://", 7) != 0 && strncmp(word, "https://", 8) != 0) ||
	     strpbrk(word, " \t'\"\\") != NULL))
		return cube_fail(err, -EINVAL, "'%s' is no URL: http://... or https://...", word);
	return 0;
}

/* A shell that ends when it is so. Whether a port listens is read where every shell can read it. */
static int ready_script(const struct cube_buf *ready, struct cube_buf *out)
{
	char word[1024];
	uint64_t port = 0;

	if (ready_word(ready->data, ready->len, BOOT_PORT, word, sizeof(word)) != NULL) {
		(void)cube_num_u64(word, 65535, &port);
		return cube_buf_printf(out,
				       "while :; do for f in /proc/net/tcp /proc/net/tcp6; do "
				       "if [ -r $f ]; then while read -r _ l _ s _; do case \"$l $s\" in "
				       "*:%04X\\ 0A) exit 0;; esac; done <$f; fi; done; sleep 1 || exit 126; "
				       "done\n",
				       (unsigned)port);
	}
	if (ready_word(ready->data, ready->len, BOOT_HTTP, word, sizeof(word)) != NULL)
		return cube_buf_printf(out,
				       "until curl -fsSo /dev/null '%s' || wget -qO /dev/null '%s'; "
				       "do sleep 1 || exit 126; done >/dev/null 2>&1\n",
				       word, word);
	cube_buf_adds(out, "until (\n");
	cube_buf_add(out, ready->data, ready->len);
	return cube_buf_adds(out, "\n) >/dev/null 2>&1; do sleep 1 || exit 126; done\n");
}

/* ---- the jobs ---- */

static int boot_job(struct cube_cube *c, const struct cube_buf *text, uint32_t timeout_s,
		    struct cube_job **ret, struct cube_err *err)
{
	struct cube_job *j;
	int r = cube_job_create(c, NULL, &j, err);

	if (r < 0)
		return r;
	j->timeout_s = timeout_s;
	cube_job_own(j)->at_boot = true;
	r = cube_job_submit(j, false, text->data, text->len, err);
	if (r < 0 || ret == NULL)
		cube_job_unref(j);
	else
		*ret = j;
	return r;
}

void cube_boot_drop(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct cube_job *j = cube_steal(own->boot_ready);

	if (j == NULL)
		return;
	cube_wait_remove(&own->boot_wait);
	if (j->state != CUBE_JOB_ENDED && !c->domain->closing)
		(void)cube_job_kill(j, SIGKILL, NULL);
	cube_job_unref(j);
}

static void boot_look(struct cube_waiter *w)
{
	struct cube_own *own = cube_container_of(w, struct cube_own, boot_wait);
	struct cube_job *j = own->boot_ready;
	struct cube_err err = {0};
	int r = 0;

	if (j->state != CUBE_JOB_ENDED) {
		cube_wait_add(&j->changed, w);
		return;
	}
	if (j->end.how == CUBE_END_TIMEOUT)
		r = cube_fail(&err, -ETIMEDOUT, "it was not ready (its template's `ready`) within %u seconds",
			      j->timeout_s);
	else if (j->end.how != CUBE_END_EXIT || j->end.code != 0)
		r = cube_fail(&err, -EREMOTEIO, "its template's `ready` ended (%s) with code %d",
			      cube_end_name(j->end.how), j->end.code);
	cube_boot_drop(&own->c);
	cube_op_booted(&own->c, r, &err);
}

int cube_boot_begin(struct cube_cube *c, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	const struct cube_template_entry *t =
		c->template != NULL ? cube_template_find(c->service, c->template) : NULL;
	const struct cube_buf *start = t != NULL ? &t->texts[CUBE_TEMPLATE_START] : NULL;
	const struct cube_buf *ready = t != NULL ? &t->texts[CUBE_TEMPLATE_READY] : NULL;
	struct cube_buf script = CUBE_BUF(CUBE_TEMPLATE_TEXT_MAX + 4096);
	int r = 0;

	if (t == NULL || (start->len == 0 && ready->len == 0))
		return 0;
	if (start->len > 0)
		r = boot_job(c, start, 0, NULL, err);
	if (r < 0 || ready->len == 0)
		return r;
	r = ready_script(ready, &script);
	r = r < 0 ? cube_fail(err, r, "out of memory")
		  : boot_job(c, &script, c->domain->ready_timeout_s, &own->boot_ready, err);
	cube_buf_done(&script);
	if (r < 0)
		return r;
	cube_waiter_init(&own->boot_wait, boot_look);
	cube_wait_add(&own->boot_ready->changed, &own->boot_wait);
	return 1;
}
