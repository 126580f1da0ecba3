/* SPDX-License-Identifier: Apache-2.0 */
/* Makes operations fail, lose their answer, come late or wait, by rules. */
#include "backends/decor/fault.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/list.h"
#include "backends/base/num.h"
#include "backends/decor/forward.h"

#define NS_PER_MS    UINT64_C(1000000)
#define DELAY_MAX_MS 3600000

static const char *const op_names[] = {
	"any",
	"status",
	"create",
	"destroy",
	"inspect",
	"list",
	"watch",
	"start",
	"stop",
	"pause",
	"resume",
	"limit",
	"link",
	"root",
	"usage",
	"dial",
	"listening",
	"access",
	"template_list",
	"template_import",
	"template_remove",
	"template_config",
	"template_commit",
	"template_derive",
	"template_keep",
	"rename",
	"volume_make",
	"volume_remove",
	"volume_list",
	"volume_copy",
	"volume_root",
	"checkpoint",
	"checkpoint_list",
	"checkpoint_remove",
	"checkpoint_root",
	"restore",
	"reset",
	"changes",
	"bind",
	"unbind",
	"adopt",
	"let_go",
	"written",
	"expire",
};

enum rule_kind { RULE_FAIL, RULE_LOSE, RULE_DELAY, RULE_HOLD };

struct rule {
	struct cube_list link;
	enum rule_kind kind;
	unsigned op; /* index of op_names */
	int code;
	unsigned long left; /* calls until it is this one's turn; 0: each call */
	uint32_t ms;
	struct cube_cancel *released; /* of a hold */
};

struct cube_fault {
	struct cube_forward fw;
	pthread_mutex_t lock; /* the rest */
	struct cube_list rules;
	unsigned long calls[CUBE_COUNT(op_names)];
};

/* 0 is "any"; CUBE_COUNT(op_names): no such operation. */
static unsigned op_index(const char *op)
{
	unsigned i = 0;

	while (i < CUBE_COUNT(op_names) && strcmp(op_names[i], op) != 0)
		i++;
	return i;
}

const char *cube_fault_op(unsigned n)
{
	return n < CUBE_COUNT(op_names) ? op_names[n] : NULL;
}

/* ---- Rules ---- */

static void rule_free(struct rule *r)
{
	cube_list_remove(&r->link);
	cube_cancel_unref(r->released);
	cube_free(r);
}

static int rule_add(struct cube_fault *f, const struct rule *from, const char *op)
{
	struct rule *r;

	if (op_index(op) == CUBE_COUNT(op_names))
		return -EINVAL;
	r = cube_memdup(from, sizeof(*from));
	if (r == NULL)
		return -ENOMEM;
	cube_list_init(&r->link);
	r->op = op_index(op);
	r->released = r->kind == RULE_HOLD ? cube_cancel_new() : NULL;
	if (r->kind == RULE_HOLD && r->released == NULL) {
		rule_free(r);
		return -ENOMEM;
	}
	pthread_mutex_lock(&f->lock);
	cube_list_push(&f->rules, &r->link);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

int cube_fault_fail(struct cube_fault *f, const char *op, int code, unsigned long nth)
{
	const struct rule r = {.kind = RULE_FAIL, .code = code, .left = nth};

	return rule_add(f, &r, op);
}

int cube_fault_lose(struct cube_fault *f, const char *op, int code, unsigned long nth)
{
	const struct rule r = {.kind = RULE_LOSE, .code = code, .left = nth};

	return rule_add(f, &r, op);
}

int cube_fault_delay(struct cube_fault *f, const char *op, uint32_t ms)
{
	const struct rule r = {.kind = RULE_DELAY, .ms = ms};

	return rule_add(f, &r, op);
}

int cube_fault_hold(struct cube_fault *f, const char *op)
{
	const struct rule r = {.kind = RULE_HOLD};

	return rule_add(f, &r, op);
}

void cube_fault_release(struct cube_fault *f, const char *op)
{
	unsigned index = op_index(op);

	pthread_mutex_lock(&f->lock);
	cube_list_each (i, &f->rules) {
		struct rule *r = cube_list_entry(i, struct rule, link);

		if (r->op != index)
			continue;
		if (r->released != NULL)
			cube_cancel_fire(r->released);
		rule_free(r);
	}
	pthread_mutex_unlock(&f->lock);
}

unsigned long cube_fault_calls(struct cube_fault *f, const char *op)
{
	unsigned index = op_index(op);
	unsigned long n;

	pthread_mutex_lock(&f->lock);
	n = index < CUBE_COUNT(op_names) ? f->calls[index] : 0;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* ---- Calls ---- */

/* What is to happen to one call, so that it happens without the lock. */
struct verdict {
	int fail, lose;
	uint64_t delay_ms;
	struct cube_cancel *hold; /* a reference */
};

/* Is this call @r's? Counts it. */
static bool rule_hits(struct rule *r, unsigned op)
{
	if (r->op != 0 && r->op != op)
		return false;
	if (r->left == 0)
		return true;
	r->left--;
	return r->left == 0;
}

static void rule_apply(const struct rule *r, struct verdict *v)
{
	switch (r->kind) {
	case RULE_FAIL:
		v->fail = v->fail != 0 ? v->fail : r->code;
		break;
	case RULE_LOSE:
		v->lose = v->lose != 0 ? v->lose : r->code;
		break;
	case RULE_DELAY:
		v->delay_ms += r->ms;
		break;
	case RULE_HOLD:
		if (v->hold == NULL)
			v->hold = cube_cancel_ref(r->released);
		break;
	}
}

static struct verdict judge(struct cube_fault *f, unsigned op)
{
	struct verdict v = {.fail = 0};

	pthread_mutex_lock(&f->lock);
	f->calls[0]++;
	f->calls[op]++;
	cube_list_each (i, &f->rules) {
		struct rule *r = cube_list_entry(i, struct rule, link);
		bool once = r->left != 0;

		if (!rule_hits(r, op))
			continue;
		rule_apply(r, &v);
		if (once)
			rule_free(r);
	}
	pthread_mutex_unlock(&f->lock);
	return v;
}

/* Until @until (mono ns), @released or @cancel, whatever comes first; -EINTR for the last. */
static int wait_for(uint64_t until, const struct cube_cancel *released, const struct cube_cancel *cancel)
{
	struct pollfd fds[] = {{.fd = cube_cancel_fd(cancel), .events = POLLIN},
			       {.fd = cube_cancel_fd(released), .events = POLLIN}};

	while (!cube_cancel_fired(cancel) && !cube_cancel_fired(released)) {
		uint64_t now = cube_clock_mono();
		int ms = -1;

		if (now >= until)
			break;
		if (until != UINT64_MAX)
			ms = (int)((until - now + NS_PER_MS - 1) / NS_PER_MS);
		(void)poll(fds, CUBE_COUNT(fds), ms);
	}
	return cube_cancel_fired(cancel) ? -EINTR : 0;
}

static int fault_before(struct cube_forward *fw, struct cube_call *call, struct cube_err *err)
{
	struct cube_fault *f = cube_container_of(fw, struct cube_fault, fw);
	struct verdict v = judge(f, op_index(call->op));
	int r = 0;

	if (v.delay_ms != 0)
		r = wait_for(cube_clock_mono() + v.delay_ms * NS_PER_MS, NULL, call->cancel);
	if (r == 0 && v.hold != NULL)
		r = wait_for(UINT64_MAX, v.hold, call->cancel);
	cube_cancel_unref(v.hold);
	call->since = (uint64_t)-v.lose;
	if (r < 0)
		return cube_fail(err, r, "%s %s: cancelled while it was delayed", fw->base.name, call->op);
	if (v.fail != 0)
		return cube_fail(err, v.fail, "%s %s: made to fail (%s)", fw->base.name, call->op,
				 cube_errno_name(v.fail));
	return 0;
}

static int fault_after(struct cube_forward *fw, struct cube_call *call, int r, struct cube_err *err)
{
	int lose = -(int)call->since;

	if (r < 0 || lose == 0)
		return r;
	return cube_fail(err, lose, "%s %s: made to lose its answer (%s)", fw->base.name, call->op,
			 cube_errno_name(lose));
}

/* ---- Text ---- */

static int errno_number(const char *name)
{
	for (int code = 1; code < 134; code++) {
		if (strcmp(cube_errno_name(code), name) == 0)
			return -code;
	}
	return 0;
}

/* "NUMBER" or nothing. */
static int parse_nth(const char *text, unsigned long *ret)
{
	uint64_t n = 0;

	if (text != NULL && (cube_num_u64(text, UINT32_MAX, &n) < 0 || n == 0))
		return -EINVAL;
	*ret = (unsigned long)n;
	return 0;
}

static int parse_delay(struct cube_fault *f, const char *op, const char *what, const char *rest)
{
	uint64_t ms;

	if (rest != NULL || cube_num_u64(what, DELAY_MAX_MS, &ms) < 0)
		return -EINVAL;
	return cube_fault_delay(f, op, (uint32_t)ms);
}

static int parse_fail(struct cube_fault *f, const char *op, const char *what, const char *rest)
{
	int code = errno_number(what);
	unsigned long nth;

	return code == 0 || parse_nth(rest, &nth) < 0 ? -EINVAL : cube_fault_fail(f, op, code, nth);
}

static int parse_lose(struct cube_fault *f, const char *op, const char *what, const char *rest)
{
	int code = errno_number(what);
	unsigned long nth;

	return code == 0 || parse_nth(rest, &nth) < 0 ? -EINVAL : cube_fault_lose(f, op, code, nth);
}

static const struct {
	const char *key, *form;
	int (*add)(struct cube_fault *f, const char *op, const char *what, const char *rest);
} keys[] = {
	{"fail", "OPERATION:ERRNO[:N]", parse_fail},
	{"lose", "OPERATION:ERRNO[:N]", parse_lose},
	{"delay", "OPERATION:MILLISECONDS", parse_delay},
};

/* One rule; cuts @text at its colons. */
static int parse_rule(struct cube_fault *f, size_t key, char *text)
{
	char *what = strchr(text, ':');
	char *rest;

	if (what == NULL)
		return -EINVAL;
	*what++ = '\0';
	rest = strchr(what, ':');
	if (rest != NULL)
		*rest++ = '\0';
	return keys[key].add(f, text, what, rest);
}

static int parse_list(struct cube_fault *f, size_t key, const char *value, struct cube_err *err)
{
	for (const char *at = value; *at != '\0';) {
		size_t n = strcspn(at, ", \t");
		cube_auto_str one = cube_strndup(at, n);
		int r = one == NULL ? -ENOMEM : n > 0 ? parse_rule(f, key, one) : 0;

		if (r < 0)
			return cube_fail(err, r, "%s = %s: '%.*s' is not of the form %s", keys[key].key,
					 value, (int)n, at, keys[key].form);
		at += n + (at[n] != '\0' ? 1 : 0);
	}
	return 0;
}

int cube_fault_parse(struct cube_fault *f, const char *key, const char *value, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(keys); i++) {
		if (strcmp(keys[i].key, key) == 0)
			return parse_list(f, i, value, err);
	}
	return cube_fail(err, -EINVAL, "'%s' is none of fail, lose, delay", key);
}

/* ---- The decorator ---- */

static void fault_close(struct cube_backend *b)
{
	struct cube_fault *f = cube_container_of(cube_forward_of(b), struct cube_fault, fw);

	cube_forward_done(&f->fw);
	cube_list_each (i, &f->rules)
		rule_free(cube_list_entry(i, struct rule, link));
	(void)pthread_mutex_destroy(&f->lock);
	cube_free(f);
}

int cube_fault_wrap(struct cube_backend *inner, struct cube_backend **ret, struct cube_fault **ret_rules,
		    struct cube_err *err)
{
	struct cube_fault *f = cube_calloc(1, sizeof(*f));

	if (f == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_forward_init(&f->fw, inner);
	f->fw.ops.close = fault_close;
	f->fw.before = fault_before;
	f->fw.after = fault_after;
	cube_list_init(&f->rules);
	(void)pthread_mutex_init(&f->lock, NULL);
	*ret = &f->fw.base;
	*ret_rules = f;
	return 0;
}
