/* SPDX-License-Identifier: Apache-2.0 */
/* The kind `host`, and the registry of these tests, which has it beside `mem`. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/decor/forward.h"
#include "backends/registry.h"

extern const struct cube_backend_ops cube_backend_mem; /* its own folder exports nothing else */

static struct {
	struct cube_backend *backend; /* the fault decorator round a mem */
	struct cube_fault *faults;
	struct cube_backend_env env;
	char dir[64];
	struct host_told told;
} host;

/* As a service would be told. */
static int host_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
		       struct cube_err *err)
{
	(void)b, (void)id;
	if (host.told.refuses)
		return cube_fail(err, -EREMOTEIO, "no longer than an hour");
	host.told.wall = wall_ns;
	host.told.what = what;
	host.told.calls++;
	return 0;
}

struct host_told *host_told(void)
{
	return &host.told;
}

/* A domain's view of it; closing that closes nothing behind. */
static void host_view_close(struct cube_backend *b)
{
	cube_free(cube_forward_of(b));
}

static int host_view_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	struct cube_forward *fw = cube_calloc(1, sizeof(*fw));

	if (fw == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_forward_init(fw, host.backend);
	fw->ops.close = host_view_close;
	fw->ops.expire = host_expire;
	fw->base.name = env->name;
	*ret = &fw->base;
	return 0;
}

static struct cube_backend_ops host_ops;

static const struct cube_backend_ops *host_kind(void)
{
	host_ops = cube_backend_mem;
	host_ops.kind = "host";
	host_ops.open = host_view_open;
	host_ops.close = host_view_close;
	host_ops.expire = host_expire;
	return &host_ops;
}

const struct cube_backend_ops *const cube_backend_kinds[] = {&cube_backend_mem, NULL};

const struct cube_backend_ops *cube_backend_find(const char *kind)
{
	if (strcmp(kind, "host") == 0)
		return host_kind();
	return strcmp(kind, "mem") == 0 ? &cube_backend_mem : NULL;
}

void host_open(struct stage *s)
{
	struct cube_backend *inner;
	struct cube_err err;

	*s = (struct stage){.keep_loop = true, .loop = cube_loop_new()};
	(void)snprintf(host.dir, sizeof(host.dir), "/tmp/cubefs-host-XXXXXX");
	assert_non_null(mkdtemp(host.dir));
	host.env = (struct cube_backend_env){.name = "host", .state_dir = host.dir, .loop = s->loop};
	assert_int_equal(cube_backend_open(&cube_backend_mem, &host.env, &inner, &err), 0);
	assert_int_equal(cube_fault_wrap(inner, &host.backend, &host.faults, &err), 0);
	stage_open_on(s, "[backend host]\nkind=host\n");
}

void host_close(struct stage *s)
{
	if (s->d != NULL)
		stage_down(s);
	cube_backend_close(host.backend);
	cube_loop_free(s->loop);
	stage_close(s);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, host.dir), 0);
}

struct cube_fault *host_faults(void)
{
	return host.faults;
}

static void count_one(void *ctx, const struct cube_info *info)
{
	(void)info;
	++*(unsigned *)ctx;
}

unsigned host_count(void)
{
	unsigned n = 0;

	assert_int_equal(cube_backend_list(host.backend, NULL, count_one, &n, NULL), 0);
	return n;
}
