/* SPDX-License-Identifier: Apache-2.0 */
/* exec: with a shell, or a program that is looked up in the job's own PATH. */
#include "backends/agent/init/child_exec.h"
#include "backends/agent/init/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CODE_NOT_EXECUTABLE 126
#define CODE_NOT_FOUND      127

/* NUL-separated words (a last NUL may be left out) as a NULL ended array with room for @extra more. */
static char **exec_words(const char *data, size_t len, size_t extra, int err)
{
	size_t n = 0;
	char **words;
	char *copy;

	for (size_t i = 0; i < len; i++)
		n += data[i] == '\0' || i + 1 == len;
	words = calloc(n + extra + 1, sizeof(*words));
	copy = words != NULL && n > 0 ? malloc(len + 1) : NULL;
	if (words == NULL || (n > 0 && copy == NULL))
		init_child_fail(err, CODE_NOT_EXECUTABLE, -ENOMEM, "no memory for the arguments");
	if (copy == NULL)
		return words;
	memcpy(copy, data, len);
	copy[len] = '\0';
	for (size_t i = 0, k = 0; k < n; k++) {
		words[k] = copy + i;
		i += strlen(copy + i) + 1;
	}
	return words;
}

static const char *exec_getenv(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env != NULL; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

/* What has no '=' is no variable and is left out. */
static char **exec_env(const struct init_child *c, int err)
{
	static char pwd[PATH_MAX + 5];
	char **env = exec_words(c->env, c->env_len, 1, err);
	size_t kept = 0;

	for (size_t i = 0; env[i] != NULL; i++) {
		if (strchr(env[i], '=') != NULL && env[i][0] != '=')
			env[kept++] = env[i];
	}
	env[kept] = NULL;
	if (c->pwd && exec_getenv(env, "PWD") == NULL) {
		(void)snprintf(pwd, sizeof(pwd), "PWD=%s", c->cwd);
		env[kept++] = pwd;
		env[kept] = NULL;
	}
	return env;
}

static _Noreturn void exec_refused(int err, int number, const char *what)
{
	bool missing = number == ENOENT || number == ENOTDIR;

	init_child_fail(err, missing ? CODE_NOT_FOUND : CODE_NOT_EXECUTABLE, -number, "%.150s: %s", what,
			missing ? "not found" : init_error(number));
}

static _Noreturn void exec_shell(const struct init_child *c, char *const *env, int err)
{
	char name[16];
	char *path = strdup(c->shell);
	char *script = strdup(c->script);
	const char *slash = strrchr(c->shell, '/');
	char *argv[] = {name, script, NULL};

	if (path == NULL || script == NULL)
		init_child_fail(err, CODE_NOT_EXECUTABLE, -ENOMEM, "no memory for the arguments");
	(void)snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : c->shell);
	if (strcmp(name, "busybox") == 0)
		(void)snprintf(name, sizeof(name), "sh"); /* it goes by the name that it is called by */
	(void)execve(path, argv, env);
	exec_refused(err, errno, c->shell);
}

/* One place after the other, as execvp does, but nothing is ever handed to a shell. */
static _Noreturn void exec_search(char **argv, char *const *env, int err)
{
	const char *path = exec_getenv(env, "PATH");
	char file[PATH_MAX];
	int worst = ENOENT;

	if (path == NULL || path[0] == '\0')
		path = INIT_PATH;
	while (*path != '\0') {
		size_t n = strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s%s%s", (int)n, path, n > 0 ? "/" : "", argv[0]) <
		    (int)sizeof(file)) {
			(void)execve(file, argv, env);
			if (errno != ENOENT && errno != ENOTDIR)
				worst = errno;
			if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
				break;
		}
		path += n + (path[n] == ':');
	}
	exec_refused(err, worst, argv[0]);
}

_Noreturn void init_child_exec(const struct init_child *c, int err)
{
	char **env = exec_env(c, err);
	char **argv;

	if (c->shell != NULL)
		exec_shell(c, env, err);
	argv = exec_words(c->argv, c->argv_len, 0, err);
	if (argv[0] == NULL || argv[0][0] == '\0')
		init_child_fail(err, CODE_NOT_FOUND, -ENOENT, "argv names no program");
	if (strchr(argv[0], '/') == NULL)
		exec_search(argv, env, err);
	(void)execve(argv[0], argv, env);
	exec_refused(err, errno, argv[0]);
}
