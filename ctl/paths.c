/* SPDX-License-Identifier: Apache-2.0 */
/* Default places of state and configuration. */
#include "ctl/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"

#define PATHS_CONFIG_MAX (1 << 20)

static const char *paths_env(const char *name)
{
	const char *value = getenv(name); /* before any thread is started */

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* "$XDG_x_HOME/cubefs", or "~/<fallback>/cubefs". */
static char *paths_home(const char *variable, const char *fallback)
{
	const char *base = paths_env(variable);
	const char *home = paths_env("HOME");
	char space[4096];
	struct passwd pw, *found = NULL;

	if (base != NULL && base[0] == '/')
		return cube_asprintf("%s/cubefs", base);
	if (home == NULL && getpwuid_r(getuid(), &pw, space, sizeof(space), &found) == 0 && found != NULL)
		home = found->pw_dir;
	return home != NULL && home[0] == '/' ? cube_asprintf("%s/%s/cubefs", home, fallback) : NULL;
}

static char *paths_absolute(const char *path)
{
	char cwd[PATH_MAX];

	if (path[0] == '/')
		return cube_strdup(path);
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return NULL;
	return cube_asprintf("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
}

int cube_paths_state(const char *given, char **ret, struct cube_err *err)
{
	const char *path = given != NULL ? given : paths_env("CUBEFS_STATE_DIR");
	char *found;

	if (path != NULL)
		found = paths_absolute(path);
	else if (geteuid() == 0)
		found = cube_strdup("/var/lib/cubefs");
	else
		found = paths_home("XDG_STATE_HOME", ".local/state");
	if (found == NULL)
		return cube_fail(err, -ENOENT,
				 "no home directory is known: name a state directory with --state");
	*ret = found;
	return 0;
}

/* 0, -ENOENT, or a failure with its sentence. */
static int paths_read(const char *path, struct cube_conf **ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(PATHS_CONFIG_MAX);
	int r = cube_file_read(AT_FDCWD, path, &text);

	if (r < 0)
		(void)cube_fail(err, r, "configuration %s: %s", path, cube_errno_text(r));
	else
		r = cube_conf_parse(cube_buf_str(&text), text.len, path, ret, err);
	cube_buf_done(&text);
	return r;
}

int cube_paths_config(const char *given, struct cube_conf **ret, struct cube_err *err)
{
	cube_auto_str home = NULL;
	cube_auto_str user = NULL;
	const char *candidates[2];

	if (given != NULL)
		return paths_read(given, ret, err);
	home = paths_home("XDG_CONFIG_HOME", ".config");
	user = home != NULL ? cube_asprintf("%s/cubefs.conf", home) : NULL;
	candidates[0] = user;
	candidates[1] = "/etc/cubefs/cubefs.conf";
	for (unsigned i = 0; i < 2; i++) {
		int r = candidates[i] != NULL ? paths_read(candidates[i], ret, err) : -ENOENT;

		if (r != -ENOENT && r != -ENOTDIR)
			return r;
	}
	return cube_conf_parse("", 0, "no configuration", ret, err);
}
