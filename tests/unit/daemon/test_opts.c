/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: every option in every form, and every way to get it wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/macros.h"
#include "fs/opts.h"

#define WORDS 8

/* Words separated by one blank; "~" stands for an empty one. They live until the next call. */
static int parse(const char *line, struct cube_opts *o, struct cube_err *err)
{
	static char copy[256], program[] = "cubefs", empty[] = "";
	char *argv[WORDS + 2] = {program}, *save = NULL;
	int argc = 1;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL && argc <= WORDS; w = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(w, "~") == 0 ? empty : w;
	return cube_opts_parse(argc, argv, o, err);
}

static struct cube_opts good(const char *line)
{
	struct cube_opts o = {0};
	struct cube_err err = {0};

	if (parse(line, &o, &err) < 0)
		fail_msg("'%s': %s", line, err.text);
	return o;
}

static void flags(void **state)
{
	static const struct {
		const char *line;
		size_t at; /* of the one flag that it sets */
	} cases[] = {
		{"-f /m", offsetof(struct cube_opts, foreground)},
		{"/m -f", offsetof(struct cube_opts, foreground)},
		{"--foreground /m", offsetof(struct cube_opts, foreground)},
		{"-h /m", offsetof(struct cube_opts, help)},
		{"--help /m", offsetof(struct cube_opts, help)},
		{"-V /m", offsetof(struct cube_opts, version)},
		{"--version /m", offsetof(struct cube_opts, version)},
		{"-o allow_other /m", offsetof(struct cube_opts, allow_other)},
		{"-oallow_other /m", offsetof(struct cube_opts, allow_other)},
		{"-o symlinks=raw /m", offsetof(struct cube_opts, symlinks_raw)},
		{"-o owners=raw /m", offsetof(struct cube_opts, owners_raw)},
		{"-o nonempty /m", offsetof(struct cube_opts, nonempty)},
		{"-o debug /m", offsetof(struct cube_opts, debug)},
		{"-o ,debug, /m", offsetof(struct cube_opts, debug)},
	};
	static const size_t all[] = {
		offsetof(struct cube_opts, help),         offsetof(struct cube_opts, version),
		offsetof(struct cube_opts, foreground),   offsetof(struct cube_opts, allow_other),
		offsetof(struct cube_opts, symlinks_raw), offsetof(struct cube_opts, owners_raw),
		offsetof(struct cube_opts, nonempty),     offsetof(struct cube_opts, debug),
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_opts o = good(cases[i].line);

		assert_string_equal(o.mount_point, "/m");
		for (size_t k = 0; k < CUBE_COUNT(all); k++)
			if (*((bool *)&o + all[k]) != (all[k] == cases[i].at))
				fail_msg("'%s' and the flag at %zu", cases[i].line, all[k]);
	}
}

static void values(void **state)
{
	struct cube_opts o = good("--config c --state=s -o debug,nonempty -o owners=raw m");

	(void)state;
	assert_string_equal(o.config, "c");
	assert_string_equal(o.state, "s");
	assert_string_equal(o.mount_point, "m");
	assert_true(o.debug && o.nonempty && o.owners_raw);
	assert_false(o.symlinks_raw);
	o = good("--state a --state b --config=x=y m"); /* the last counts; a value may hold anything */
	assert_string_equal(o.state, "b");
	assert_string_equal(o.config, "x=y");
	o = good("m");
	assert_null(o.state);
	assert_null(o.config);
	o = good("--state -f m"); /* behind an option that wants a value anything is one */
	assert_string_equal(o.state, "-f");
	assert_false(o.foreground);
}

/* A mount point may look like anything behind --; without one there is help and the version alone. */
static void mount_points(void **state)
{
	(void)state;
	assert_string_equal(good("-- -f").mount_point, "-f");
	assert_string_equal(good("-f -- --state").mount_point, "--state");
	assert_string_equal(good("-").mount_point, "-");
	assert_null(good("--help").mount_point);
	assert_null(good("-V").mount_point);
}

static void refusals(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"", "which mount point"},
		{"-f", "which mount point"},
		{"--", "which mount point"},
		{"-f --state s", "which mount point"},
		{"-x m", "-x: no such option"},
		{"--foregroun m", "--foregroun: no such option"},
		{"--foreground=yes m", "--foreground=yes: no such option"},
		{"-ff m", "-ff: no such option"},
		{"-F m", "-F: no such option"},
		{"--statex s m", "--statex: no such option"},
		{"--state", "--state wants a path"},
		{"m --state", "--state wants a path"},
		{"--state= m", "--state wants a path"},
		{"--state ~ m", "--state wants a path"},
		{"--config", "--config wants a path"},
		{"--config= m", "--config wants a path"},
		{"m -o", "-o wants options"},
		{"-o nonsense m", "-o nonsense: no such option"},
		{"-ononsense m", "-o nonsense: no such option"},
		{"-o debug,nonsense,nonempty m", "-o nonsense: no such option"},
		{"-o allow_others m", "-o allow_others: no such option"},
		{"-o allow_othe m", "-o allow_othe: no such option"},
		{"-o symlinks=cooked m", "-o symlinks=cooked: no such option"},
		{"-o symlinks m", "-o symlinks: no such option"},
		{"-o owners m", "-o owners: no such option"},
		{"-o DEBUG m", "-o DEBUG: no such option"},
		{"m n", "n: one mount point is enough, m was named before"},
		{"m -- -f", "-f: one mount point is enough"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_opts o = {.state = "untouched"};
		struct cube_err err = {0};

		assert_int_equal(parse(cases[i].line, &o, &err), -EINVAL);
		assert_string_equal(o.state, "untouched"); /* nothing half-made */
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("'%s' says '%s'", cases[i].line, err.text);
	}
}

/* Whatever is an option is in the usage text. */
static void usage(void **state)
{
	static const char *const words[] = {
		"-f",    "--foreground", "--config",    "--state",      "-h",         "--help",
		"-V",    "--version",    "allow_other", "symlinks=raw", "owners=raw", "nonempty",
		"debug", "umount",       "upgrade",     "doctor",       "MOUNTPOINT"};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	cube_opts_usage(f);
	assert_int_equal(fclose(f), 0);
	for (size_t i = 0; i < CUBE_COUNT(words); i++)
		assert_non_null(strstr(text, words[i]));
	free(text);
}

static void nine(void **state)
{
	struct cube_opts o = good("--9p unix:/s --9p=stdio --9p-token-file /t");
	struct cube_err err = {0};

	(void)state;
	assert_int_equal(o.n_p9, 2);
	assert_string_equal(o.p9[0], "unix:/s");
	assert_string_equal(o.p9[1], "stdio");
	assert_string_equal(o.p9_token_file, "/t");
	assert_null(o.mount_point); /* none is needed */
	assert_true(cube_opts_stdio(&o));
	o = good("/m --9p tcp:127.0.0.1:1");
	assert_string_equal(o.mount_point, "/m");
	assert_false(cube_opts_stdio(&o));
	assert_int_equal(parse("--9p", &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--9p wants an address"));
	assert_int_equal(parse("--9p-token-file /t", &o, &err), -EINVAL); /* nothing to serve */
	assert_int_equal(parse("--9pp /t", &o, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags),    cmocka_unit_test(values), cmocka_unit_test(mount_points),
		cmocka_unit_test(refusals), cmocka_unit_test(usage),  cmocka_unit_test(nine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
