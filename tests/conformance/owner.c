/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a sandbox is: what a list tells to who does not know it; adoption. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

struct told {
	const char *id;
	struct cube_info info;
	char labels[256];
	unsigned hits;
};

static void tell(void *ctx, const struct cube_info *info)
{
	struct told *t = ctx;

	if (strcmp(info->id, t->id) != 0)
		return;
	t->info = *info;
	(void)snprintf(t->labels, sizeof(t->labels), "%s", info->labels != NULL ? info->labels : "");
	t->hits++;
}

/* Its mark always; the rest where the backend has it, and then rightly. */
static void told_of(struct subject *s)
{
	const struct cube_pair labels[] = {{"a", "b c"}, {"x", "1=2"}};
	char uid[17], *id = NULL;
	struct cube_spec spec = stage_spec(uid);
	struct told t;

	spec.labels = labels;
	spec.n_labels = 2;
	assert_int_equal(cube_backend_create(s->stage.b, &spec, NULL, &id, NULL), 0);
	t = (struct told){.id = id};
	assert_int_equal(cube_backend_list(s->stage.b, NULL, tell, &t, NULL), 0);
	assert_int_equal(t.hits, 1);
	assert_string_equal(t.info.uid, uid);
	if (t.info.name[0] != '\0')
		assert_string_equal(t.info.name, spec.name);
	if (t.labels[0] != '\0')
		assert_string_equal(t.labels, "a=b c\nx=1=2\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* Under another mark it goes on as it is, and is steered as before; let go, it is there still. */
static void adopted(struct subject *s)
{
	struct bed b = bed_open(s);
	struct cube_err err;

	expect_output(&b, 7, "export KEPT=yes", "");
	assert_int_equal(cube_backend_adopt(s->stage.b, b.id, "00000000000000aa", NULL, &err), 0);
	assert_int_equal(cube_backend_adopt(s->stage.b, b.id, "00000000000000aa", NULL, &err), 0); /* again */
	assert_int_equal(stage_state(&s->stage, b.id), CUBE_IS_RUNNING);
	ear_close(b.ear);
	b.ear = ear_open(&s->stage, b.id);
	expect_output(&b, 7, "echo $KEPT", "yes\n");
	assert_int_equal(cube_backend_let_go(s->stage.b, b.id, &err), 0);
	assert_true(stage_listed(&s->stage, b.id));
	assert_int_equal(stage_state(&s->stage, b.id), CUBE_IS_RUNNING);
	bed_close(&b);
}

static void adopt_unknown(struct subject *s)
{
	struct cube_err err;

	expect_failure(cube_backend_adopt(s->stage.b, "0123456789abcdef", "00000000000000aa", NULL, &err),
		       -ENOENT, &err);
	assert_int_equal(cube_backend_let_go(s->stage.b, "0123456789abcdef", &err), 0);
}

const struct check checks_owner[] = {
	{"what a list tells", 0, 0, told_of},
	{"adopted and let go", CUBE_CAP_ADOPT | CUBE_CAP_EXEC, 0, adopted},
	{"adopt what is not there", CUBE_CAP_ADOPT, 0, adopt_unknown},
	{.name = NULL},
};
