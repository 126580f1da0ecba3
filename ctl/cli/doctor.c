/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs doctor`: looks at this machine and every configured backend, and says what to do. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/spawn.h"
#include "backends/registry.h"
#include "ctl/cli/cli.h"
#include "ctl/paths.h"

struct doctor {
	unsigned bad;
	const char *backend; /* in front of each line; NULL: the machine */
};

static void doctor_say(void *ctx, bool ok, const char *what, const char *fix)
{
	struct doctor *d = ctx;

	(void)printf("%-5s %s%s%s", ok ? "ok" : "FAIL", d->backend != NULL ? d->backend : "",
		     d->backend != NULL ? ": " : "", what);
	if (!ok && fix != NULL)
		(void)printf("\n      -> %s", fix);
	(void)printf("\n");
	d->bad += !ok;
}

static void doctor_fuse(struct doctor *d)
{
	cube_auto_fd fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		doctor_say(d, true, "/dev/fuse can be opened", NULL);
	else if (errno == EACCES)
		doctor_say(d, false, "/dev/fuse may not be opened by you", "as root: chmod 666 /dev/fuse");
	else
		doctor_say(d, false, "/dev/fuse cannot be opened", "as root: modprobe fuse");
}

static void doctor_fusermount(struct doctor *d)
{
	const char *const argv[] = {"fusermount3", "--version", NULL};
	struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = -1};
	int status;

	if (geteuid() == 0)
		return;
	if (cube_spawn_run(&s, NULL, &status, NULL) == 0 && status == 0)
		doctor_say(d, true, "fusermount3 is installed", NULL);
	else
		doctor_say(d, false, "fusermount3 is not installed: an ordinary user cannot mount without it",
			   "as root: apt-get install fuse3");
}

static void doctor_disk(struct doctor *d, const char *state)
{
	cube_auto_str what = NULL;
	struct statvfs fs;
	uint64_t free_bytes;

	if (statvfs(state, &fs) < 0)
		return;
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	what = cube_asprintf("%" PRIu64 " MiB are free for the state directory", free_bytes >> 20);
	doctor_say(d, free_bytes > (UINT64_C(1) << 30), what,
		   "free at least 1 GiB on the file system that holds it, or name another with --state");
}

static char *doctor_state(struct doctor *d, const char *given)
{
	struct cube_err err = {0};
	cube_auto_str what = NULL;
	char *state = NULL;

	if (cube_paths_state(given, &state, &err) < 0) {
		doctor_say(d, false, err.text, "cubefs --state DIR");
		return NULL;
	}
	if (cube_file_mkdir_path(state, 0700) < 0 || access(state, W_OK | X_OK) < 0) {
		what = cube_asprintf("the state directory %s cannot be written", state);
		doctor_say(d, false, what, "make it writable for you, or name another with --state");
		cube_free(state);
		return NULL;
	}
	what = cube_asprintf("the state directory %s can be written", state);
	doctor_say(d, true, what, NULL);
	doctor_disk(d, state);
	return state;
}

static void doctor_caps(struct doctor *d, const struct cube_backend *b)
{
	for (unsigned n = 0; n < CUBE_CAP_COUNT; n++) {
		cube_auto_str what = NULL;

		if (!(b->ops->caps & (1u << n)))
			continue;
		if (b->caps & (1u << n)) {
			what = cube_asprintf("can do: %s", cube_cap_name(n));
			doctor_say(d, true, what, NULL);
		} else {
			what = cube_asprintf("cannot do: %s", cube_cap_name(n));
			doctor_say(d, false, what, b->missing[n]);
		}
	}
}

/* Opens one backend as the daemon would, in this process, and lets it tell; in a directory of its own beside
 * the daemon's, since a daemon may be running. */
static void doctor_backend(struct doctor *d, const char *name, const struct cube_backend_ops *ops,
			   const char *state, const struct cube_conf_section *conf)
{
	struct cube_loop *loop = cube_loop_new();
	cube_auto_str dir = cube_asprintf("%s/doctor/%s", state, name);
	struct cube_backend_env env = {
		.name = name, .state_dir = dir, .loop = loop, .conf = conf, .look_only = true};
	struct cube_backend *b = NULL;
	struct cube_err err = {0};
	int r = 0;

	d->backend = name;
	if (loop == NULL || dir == NULL || cube_file_mkdir_path(dir, 0700) < 0)
		return;
	if (ops->prepare != NULL)
		r = ops->prepare(dir, conf, &err);
	if (r == 0)
		r = cube_backend_open(ops, &env, &b, &err);
	if (r < 0 || b == NULL) {
		doctor_say(d, false, err.text, "see cubefs-local(7), or the page of its kind");
	} else {
		if (ops->doctor != NULL)
			ops->doctor(b, doctor_say, d);
		doctor_caps(d, b);
		cube_backend_close(b);
	}
	cube_loop_free(loop);
}

static void doctor_configured(struct doctor *d, const struct cube_conf *conf, const char *state)
{
	const struct cube_conf_section *s;
	bool any = false;

	for (size_t i = 0; (s = cube_conf_at(conf, i)) != NULL; i++) {
		const char *name = cube_conf_section_name(s), *kind;
		const struct cube_backend_ops *ops;

		if (strncmp(name, "backend ", 8) != 0)
			continue;
		any = true;
		kind = cube_conf_get(s, "kind");
		ops = cube_backend_find(kind != NULL ? kind : name + 8);
		d->backend = name + 8;
		if (ops == NULL)
			doctor_say(d, false, "there is no such kind of backend",
				   "correct `kind` in the configuration");
		else
			doctor_backend(d, name + 8, ops, state, s);
	}
	if (!any)
		doctor_backend(d, cube_backend_kinds[0]->kind, cube_backend_kinds[0], state, NULL);
}

static void doctor_clean(const char *state)
{
	cube_auto_fd dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		(void)cube_file_remove_tree(dir, "doctor"); /* what is left is begun anew the next time */
}

struct doctor_words {
	const char *state, *config;
	struct cube_cli_9p p9;
};

/* False: these are no words for it. */
static bool doctor_words(int argc, char **argv, struct doctor_words *ret)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "--state") == 0)
			ret->state = argv[i + 1];
		else if (strcmp(argv[i], "--config") == 0)
			ret->config = argv[i + 1];
		else if (strcmp(argv[i], "--9p-token-file") == 0)
			ret->p9.token_file = argv[i + 1];
		else if (strcmp(argv[i], "--9p") == 0 && ret->p9.n < CUBE_CLI_9P)
			ret->p9.addresses[ret->p9.n++] = argv[i + 1];
		else
			return false;
	}
	return true;
}

int cube_cli_doctor(int argc, char **argv,
		    void (*fronts)(const struct cube_conf *conf, const struct cube_cli_9p *given,
				   void (*say)(void *ctx, bool ok, const char *what, const char *fix),
				   void *ctx))
{
	struct doctor_words words = {0};
	struct doctor d = {0};
	struct cube_conf *conf = NULL;
	struct cube_err err = {0};
	cube_auto_str state = NULL;

	if (!doctor_words(argc, argv, &words)) {
		(void)fprintf(stderr, "usage: cubefs doctor [--state DIR] [--config FILE] [--9p ADDRESS] "
				      "[--9p-token-file FILE]\n");
		return 2;
	}
	doctor_fuse(&d);
	doctor_fusermount(&d);
	state = doctor_state(&d, words.state);
	if (cube_paths_config(words.config, &conf, &err) < 0) {
		doctor_say(&d, false, err.text, "correct the configuration file, see cubefs.conf(5)");
	} else {
		fronts(conf, &words.p9, doctor_say, &d);
		if (state != NULL)
			doctor_configured(&d, conf, state);
	}
	cube_conf_free(conf);
	if (state != NULL)
		doctor_clean(state);
	return d.bad > 0 ? 1 : 0;
}
