/* SPDX-License-Identifier: Apache-2.0 */
/* What is at a backend and nobody here has: sweep, adopt; what `sandboxes` says of it. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/ctl_priv.h"
#include "ctl/show.h"

/* As after the loss of a state directory: the backend has it, the domain has not. */
static char *orphan(struct stage *s, const char *uid, const char *name, const struct cube_pair *label)
{
	const struct cube_spec spec = {
		.uid = uid, .name = name, .labels = label, .n_labels = label != NULL ? 1 : 0};
	char *id = NULL;

	assert_int_equal(cube_backend_create(s->d->default_service->backend, &spec, NULL, &id, &s->err), 0);
	return id;
}

static void expect(struct stage *s, const char *line, int code, const char *part)
{
	int r = stage_root(s, line);

	if (r != code || strstr(r < 0 ? s->err.text : s->answer, part) == NULL)
		fail_msg("'%s': %s '%s' '%s', wanted %s with '%s'", line, cube_errno_name(r), s->err.text,
			 s->answer, cube_errno_name(code), part);
}

static struct cube_cube *find(struct stage *s, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

static void sweep_lines(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	expect(&s, "sweep backend=none", -ENOENT, "no backend 'none'");
	expect(&s, "sweep older=soon", -EINVAL, "older=soon");
	expect(&s, "sweep older=-1", -EINVAL, "older=-1");
	expect(&s, "sweep older=1 older=2", -EINVAL, "each once");
	expect(&s, "sweep all", -EINVAL, "no key=value");
	expect(&s, "sweep colour=red", -EINVAL, "'colour'");
	expect(&s, "sweep label.x=", -EINVAL, "neither of them empty");
	expect(&s, "sweep label.x=1 label.y=2", -EINVAL, "each once");
	expect(&s, "sweep a=1 b=2 c=3 d=4", -EINVAL, "usage: sweep");
	assert_int_equal(cube_domain_own(s.d)->sweeps, 0);
	expect(&s, "sweep", 0, "orphans=0 expired=0");
	host_close(&s);
}

static void sweeps(void **state)
{
	const struct cube_pair red = {"team", "red"};
	struct stage s;
	char *one, *two;

	(void)state;
	host_open(&s);
	(void)stage_make(&s, "dev label.team=red");
	one = orphan(&s, "00000000000000a1", "was-one", &red);
	two = orphan(&s, "00000000000000a2", "was-two", NULL);
	expect(&s, "sweep", 0, "orphans=2 expired=0 host/");
	assert_non_null(strstr(s.answer, one));
	assert_non_null(strstr(s.answer, two));
	assert_int_equal(host_count(), 3); /* told alone */
	expect(&s, "sweep older=3600", 0, "orphans=0 expired=0");
	expect(&s, "sweep label.team=blue", 0, "orphans=0 expired=0");
	expect(&s, "sweep label.team=re", 0, "orphans=0 expired=0");
	assert_int_equal(host_count(), 3);
	expect(&s, "sweep label.team=red backend=host", 0, "orphans=1 expired=0 host/");
	assert_non_null(strstr(s.answer, one));
	assert_int_equal(host_count(), 2);
	/* One that cannot be destroyed: the sentence; it stays, and can be swept later. */
	assert_int_equal(cube_fault_fail(host_faults(), "destroy", -EREMOTEIO, 1), 0);
	expect(&s, "sweep older=0", -EREMOTEIO, "was 'was-two'");
	expect(&s, "sweep older=0", 0, "orphans=1 expired=0 host/");
	assert_int_equal(host_count(), 1);
	/* The backend does not answer. */
	assert_int_equal(cube_fault_fail(host_faults(), "list", -EHOSTUNREACH, 1), 0);
	expect(&s, "sweep", -EHOSTUNREACH, "");
	assert_int_equal(stage_exec(&s, find(&s, "dev"), NULL, "echo x", NULL), 0);
	cube_free(one);
	cube_free(two);
	host_close(&s);
}

/* Those that were left as they were at the end of their life; those of a long life, or without one, stay. */
static void sweeps_expired(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	(void)stage_make(&s, "long lifetime=1000 at_end=stop");
	(void)stage_make(&s, "none");
	(void)stage_make(&s, "a lifetime=1000 at_end=stop label.n=1");
	(void)stage_make(&s, "b lifetime=1000 at_end=pause");
	assert_int_equal(stage_cube(&s, find(&s, "none"), "stop 0"), 0);
	cube_domain_enter(s.d);
	cube_domain_find(s.d, "a")->times.ends_wall = 1;
	cube_domain_find(s.d, "b")->times.ends_wall = 1;
	cube_times_look(cube_domain_find(s.d, "a"));
	cube_times_look(cube_domain_find(s.d, "b"));
	cube_domain_leave(s.d);
	assert_true(stage_phase(&s, find(&s, "a"), CUBE_STOPPED));
	assert_true(stage_phase(&s, find(&s, "b"), CUBE_PAUSED));
	expect(&s, "sweep", 0, "orphans=0 expired=2 a=expired b=expired");
	assert_non_null(find(&s, "a"));
	expect(&s, "sweep older=3600", 0, "orphans=0 expired=0");
	expect(&s, "sweep label.n=1", 0, "orphans=0 expired=1 a=expired");
	assert_null(find(&s, "a"));
	assert_int_equal(host_count(), 3); /* it is gone when that returns */
	expect(&s, "sweep backend=host", 0, "orphans=0 expired=1 b=expired");
	expect(&s, "sweep older=0", 0, "orphans=0 expired=0");
	assert_int_equal(host_count(), 2);
	assert_non_null(find(&s, "long"));
	assert_non_null(find(&s, "none"));
	host_close(&s);
}

static bool left_alone(void *ctx)
{
	return ((struct cube_domain_own *)ctx)->sweeps == 0;
}

static void ignored(struct cube_verb_call *call, int code)
{
	(void)call;
	assert_int_equal(code, -EINTR);
}

/* Whoever gave up; meanwhile nothing can be adopted. */
static void sweep_called_off(void **state)
{
	static struct cube_verb_call call;
	struct stage s;

	(void)state;
	host_open(&s);
	cube_domain_enter(s.d);
	call = (struct cube_verb_call){.domain = s.d, .scope = CUBE_SCOPE_ROOT, .done = ignored};
	cube_verb_start(&call, "sweep", 5);
	assert_int_equal(cube_domain_own(s.d)->sweeps, 1);
	struct cube_create_key key = {"adopt", "mem-x"};
	struct cube_cube *c;
	assert_int_equal(cube_cube_create(s.d, &call.by, "a", &key, 1, &c, &s.err), -EBUSY);
	cube_verb_cancel(&call);
	cube_domain_leave(s.d);
	assert_true(stage_until(&s, left_alone, cube_domain_own(s.d)));
	host_close(&s);
}

static void adopt_lines(void **state)
{
	struct stage s;
	char *id, line[200];

	(void)state;
	host_open(&s);
	id = orphan(&s, "00000000000000a1", "was-one", NULL);
	expect(&s, "create a adopt=", -EINVAL, "adopt=");
	expect(&s, "create a adopt=../x", -EINVAL, "no id of a sandbox");
	expect(&s, "create a adopt=mem-none", -ENOENT, "mem-none");
	static const char *const settled[] = {"memory=64M", "pids=9", "template=base", "net=open",
					      "privileged=yes"};
	for (size_t i = 0; i < CUBE_COUNT(settled); i++) {
		(void)snprintf(line, sizeof(line), "create a adopt=%s %s", id, settled[i]);
		assert_true(stage_root(&s, line) == -EINVAL || s.err.code == -EOPNOTSUPP);
	}
	assert_null(find(&s, "a"));
	assert_int_equal(host_count(), 1);
	(void)snprintf(line, sizeof(line), "create a adopt=%s", id);
	expect(&s, line, 0, "name=a");
	(void)snprintf(line, sizeof(line), "create b adopt=%s", id);
	expect(&s, line, -EBUSY, "sandbox 'a' has it");
	cube_free(id);
	host_close(&s);
}

static bool none_dies(void *ctx)
{
	return cube_list_empty(&((struct cube_domain_own *)ctx)->dying);
}

/* It works as any other, over a new daemon too; its end is no end. */
static void adopts(void **state)
{
	const struct cube_pair red = {"team", "red"};
	struct cube_buf text = CUBE_BUF(65536);
	struct stage s;
	char *id, *out, line[200];

	(void)state;
	host_open(&s);
	id = orphan(&s, "00000000000000a1", "was-one", &red);
	assert_int_equal(cube_backend_stop(s.d->default_service->backend, id, 0, NULL, NULL), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_BACKEND, s.d->default_service, "refresh"), 0);
	cube_domain_enter(s.d);
	assert_int_equal(cube_show_backend_sandboxes(s.d->default_service, &text), 0);
	cube_domain_leave(s.d);
	(void)snprintf(line, sizeof(line), "%s stopped - label.team=red mark=00000000000000a1 was=was-one\n",
		       id);
	assert_string_equal(cube_buf_str(&text), line);
	cube_buf_done(&text);
	(void)snprintf(line, sizeof(line), "create a adopt=%s label.mine=yes env.X=5", id);
	expect(&s, line, 0, "name=a");
	assert_int_equal(find(&s, "a")->phase, CUBE_RUNNING); /* it stood still, and was started */
	assert_string_equal(find(&s, "a")->template, "base");
	assert_int_equal(stage_exec(&s, find(&s, "a"), NULL, "echo $X", &out), 0);
	assert_string_equal(out, "5\n");
	cube_free(out);
	expect(&s, "sweep older=0", 0, "orphans=0 expired=0");
	stage_down(&s);
	stage_up(&s);
	assert_true(stage_phase(&s, find(&s, "a"), CUBE_RUNNING));
	assert_int_equal(stage_exec(&s, find(&s, "a"), NULL, "echo x", NULL), 0);
	expect(&s, "destroy a", 0, "");
	assert_int_equal(host_count(), 1);
	/* A creation that fails leaves what was there. */
	assert_int_equal(cube_fault_fail(host_faults(), "inspect", -EREMOTEIO, 1), 0);
	(void)snprintf(line, sizeof(line), "create a adopt=%s", id);
	expect(&s, line, -EREMOTEIO, "");
	assert_null(find(&s, "a"));
	assert_int_equal(host_count(), 1);
	assert_int_equal(cube_fault_fail(host_faults(), "adopt", -EBUSY, 1), 0);
	expect(&s, line, -EBUSY, "");
	assert_true(stage_until(&s, none_dies, cube_domain_own(s.d))); /* what was refused has gone as well */
	expect(&s, "sweep older=0", 0, "orphans=1 expired=0");
	assert_int_equal(host_count(), 0);
	cube_free(id);
	host_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweep_lines),    cmocka_unit_test(sweeps),
		cmocka_unit_test(sweeps_expired), cmocka_unit_test(sweep_called_off),
		cmocka_unit_test(adopt_lines),    cmocka_unit_test(adopts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
