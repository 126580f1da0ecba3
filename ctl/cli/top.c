/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs top [-b] [-d SECONDS] [MOUNTPOINT]`: what the sandboxes of a mount do. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "ctl/cli/cli.h"
#include "ctl/cli/mounts.h"
#include "ctl/cli/top_screen.h"

#define TOP_USAGE      2
#define TOP_SECONDS    2
#define TOP_ANSWER_MS  10000
#define TOP_COUNTED_MS 1000 /* so long a table for once waits for counters that nobody has asked for yet */
#define TOP_STEP_MS    20
#define TOP_PLAIN      140 /* columns where there is no terminal */

struct top_words {
	bool once;
	uint32_t seconds;
	const char *mount;
};

static int top_usage(void)
{
	(void)fputs("usage: cubefs top [-b] [-d SECONDS] [MOUNTPOINT]\n", stderr);
	return TOP_USAGE;
}

static int top_parse(int argc, char **argv, struct top_words *w)
{
	uint64_t n;
	int c;

	while ((c = getopt(argc, argv, "+bd:")) != -1) { /* NOLINT(concurrency-mt-unsafe): one thread yet */
		if (c == 'b') {
			w->once = true;
		} else if (c == 'd' && cube_num_u64(optarg, 3600, &n) == 0 && n > 0) {
			w->seconds = (uint32_t)n;
		} else {
			if (c == 'd')
				(void)fprintf(stderr, "cubefs: -d %s: seconds, 1 to 3600\n", optarg);
			return -EINVAL;
		}
	}
	if (argc - optind > 1)
		return -EINVAL;
	w->mount = argv[optind];
	return 0;
}

static void top_print(const struct top_table *t)
{
	char line[TOP_LINE];

	top_head(line, TOP_PLAIN, TOP_SORTS);
	(void)printf("%s\n", line);
	for (size_t i = 0; i < t->n; i++) {
		top_line(&t->rows[i], line, TOP_PLAIN);
		(void)printf("%s\n", line);
	}
}

static bool top_is_counted(const struct top_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].taken_ns == TOP_UNKNOWN && strcmp(t->rows[i].state, "running") == 0)
			return false;
	return true;
}

/* The look itself has the counters asked for, so a second one a moment later knows more. */
static int top_once(struct top_reader *r, const char *mount, struct cube_err *err)
{
	const struct timespec step = {.tv_nsec = TOP_STEP_MS * 1000000L};
	struct top_table t = {0}, fresh;
	bool any = false;
	uint64_t silent;

	for (unsigned ms = 0; ms < TOP_ANSWER_MS && (!any || ms < TOP_COUNTED_MS); ms += TOP_STEP_MS) {
		if (top_reader_take(r, &fresh, err, &silent)) {
			top_free(&t);
			t = fresh;
			any = true;
			if (top_is_counted(&t))
				break;
			top_reader_again(r);
		}
		if (err->code != 0)
			break;
		(void)nanosleep(&step, NULL);
	}
	if (any)
		top_print(&t);
	top_free(&t);
	if (any)
		return 0;
	if (err->code == 0)
		(void)cube_fail(err, -ETIMEDOUT, "%s: no answer in %u s: is its daemon stopped?", mount,
				TOP_ANSWER_MS / 1000);
	return err->code;
}

static int top_run(const struct top_words *w, const char *mount, struct cube_err *err)
{
	bool once = w->once || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
	struct top_reader *r = top_reader_start(mount, w->seconds * 1000, err);

	if (r == NULL)
		return err->code;
	return once ? top_once(r, mount, err) : top_screen(r, mount, err);
}

int cube_cli_top(int argc, char **argv)
{
	struct top_words w = {.seconds = TOP_SECONDS};
	struct cube_err err = {0};
	cube_auto_str only = NULL;
	const char *mount;

	if (top_parse(argc, argv, &w) < 0)
		return top_usage();
	mount = w.mount != NULL ? w.mount : getenv("CUBEFS_MOUNT");
	if (mount == NULL || mount[0] == '\0') {
		if (cube_mounts_only(&only, &err) < 0)
			return cube_cli_fail(&err);
		mount = only;
	}
	int r = top_run(&w, mount, &err);

	(void)fflush(stdout);
	if (r < 0)
		(void)cube_cli_fail(&err);
	/* Its threads may be waiting for a mount that does not answer: nobody waits for them. */
	_exit(r < 0 ? 1 : 0);
}
