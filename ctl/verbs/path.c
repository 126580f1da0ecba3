/* SPDX-License-Identifier: Apache-2.0 */
/* mkdir, rmdir, mv: what the commands do, for clients that can only write files. The tree that is shown does it
 * (domain.paths); here is what a path may look like. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/domain.h"
#include "ctl/verbs/verbs.h"

/* Words between slashes; `.` and nothing at all are skipped, as everywhere. */
static int path_check(const char *verb, const char *path, struct cube_err *err)
{
	unsigned parts = 0;

	if (path[0] == '/')
		return cube_fail(err, -EINVAL,
				 "%s: '%s' is absolute: a path begins in the directory of this ctl", verb,
				 path);
	for (const char *at = path; *at != '\0'; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && memcmp(at, "..", 2) == 0)
			return cube_fail(err, -EINVAL, "%s: '%s': .. does not lead out of here", verb, path);
		if (len != 1 || at[0] != '.')
			parts++;
		at += len;
	}
	return parts > 0 ? 0 : cube_fail(err, -EINVAL, "%s: '%s' names nothing", verb, path);
}

static int path_run(struct cube_verb_call *call, enum cube_path_act act, struct cube_err *err)
{
	const struct cube_domain_paths *paths = &call->domain->paths;

	for (unsigned i = 1; i < call->n_words; i++) {
		int r = path_check(call->verb->name, call->words[i], err);

		if (r < 0)
			return r;
	}
	if (paths->start == NULL)
		return cube_fail(err, -EOPNOTSUPP, "%s: no tree is served here", call->verb->name);
	return paths->start(paths->ctx, act, call, err);
}

static int mkdir_run(struct cube_verb_call *call, struct cube_err *err)
{
	return path_run(call, CUBE_PATH_MKDIR, err);
}

static int rmdir_run(struct cube_verb_call *call, struct cube_err *err)
{
	return path_run(call, CUBE_PATH_RMDIR, err);
}

static int mv_run(struct cube_verb_call *call, struct cube_err *err)
{
	return path_run(call, CUBE_PATH_MV, err);
}

const struct cube_verb cube_verb_mkdir = {
	.name = "mkdir",
	.args = "PATH",
	.summary = "what the command does, of a path beneath this directory",
	.min = 1,
	.max = 1,
	.run = mkdir_run,
};

const struct cube_verb cube_verb_rmdir = {
	.name = "rmdir",
	.args = "PATH",
	.summary = "the same",
	.min = 1,
	.max = 1,
	.run = rmdir_run,
};

const struct cube_verb cube_verb_mv = {
	.name = "mv",
	.args = "PATH PATH",
	.summary = "the same; never onto what is there",
	.min = 2,
	.max = 2,
	.run = mv_run,
};
