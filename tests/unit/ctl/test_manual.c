/* SPDX-License-Identifier: Apache-2.0 */
/* What is written about verbs and settings is what there is: the tables of verbs against cubefs-files(5), the
 * manual in the mount against both, the daemon's settings against cubefs.conf(5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/buf.h"
#include "ctl/domain.h"
#include "ctl/show.h"
#include "ctl/verb.h"

#define MANUAL_MAX (1 << 20)

static const char *const titles[CUBE_SCOPE_COUNT] = {
	[CUBE_SCOPE_ROOT] = "Verbs of the root",
	[CUBE_SCOPE_BACKEND] = "Verbs of a backend",
	[CUBE_SCOPE_TEMPLATE] = "Verbs of a template",
	[CUBE_SCOPE_CUBE] = "Verbs of a sandbox",
	[CUBE_SCOPE_SESSION] = "Verbs of a session",
	[CUBE_SCOPE_JOB] = "Verbs of a job",
	[CUBE_SCOPE_POOL] = "Verbs of a pool",
	[CUBE_SCOPE_PORT] = "Verbs of a port",
	[CUBE_SCOPE_CHECKPOINT] = "Verbs of a checkpoint",
};

/* A file of the source tree. NUL ended; freed by the test. */
static char *manual_read(const char *name)
{
	char path[4096], *text = calloc(1, MANUAL_MAX);
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", CUBEFS_SOURCE_DIR, name);
	f = fopen(path, "re");
	if (f == NULL || text == NULL)
		fail_msg("%s cannot be read", path);
	assert_true(fread(text, 1, MANUAL_MAX - 1, f) > 0);
	(void)fclose(f);
	return text;
}

/* The part of a page between `.Ss TITLE` and the next section. */
static char *manual_section(char *page, const char *title)
{
	char line[128], *begin;

	(void)snprintf(line, sizeof(line), "\n.Ss %s\n", title);
	begin = strstr(page, line);
	if (begin == NULL)
		fail_msg("there is no '.Ss %s'", title);
	begin = strdup(begin + strlen(line));
	assert_non_null(begin);
	for (char *at = begin; (at = strstr(at, "\n.S")) != NULL; at++)
		if (at[3] == 's' || at[3] == 'h') /* .Ss, .Sh; not .Sx */
			at[1] = '\0';
	return begin;
}

static unsigned manual_items(const char *section)
{
	unsigned n = 0;

	for (const char *at = section; (at = strstr(at, ".It Cm ")) != NULL; at++)
		n++;
	return n;
}

static void verbs_are_in_the_manual(void **state)
{
	char *page = manual_read("docs/cubefs-files.5");

	(void)state;
	for (unsigned scope = 0; scope < CUBE_SCOPE_COUNT; scope++) {
		const struct cube_verb *const *v = cube_verbs(scope);
		char *section = manual_section(page, titles[scope]);
		unsigned n = 0;

		for (; v[n] != NULL; n++) {
			char item[160];

			(void)snprintf(item, sizeof(item), ".It Cm %s%s%s\n", v[n]->name,
				       v[n]->args[0] != '\0' ? " " : "", v[n]->args);
			if (strstr(section, item) == NULL)
				fail_msg("%s: the manual has no '%s'", titles[scope], item);
		}
		assert_int_equal(manual_items(section), n); /* and nothing else */
		free(section);
	}
	free(page);
}

/* By the path of a ctl: "ctl", "X/ctl", "X/sessions/Y/ctl", "X/jobs/Y/ctl". */
static enum cube_scope path_scope(const char *path)
{
	if (strstr(path, "/sessions/") != NULL)
		return CUBE_SCOPE_SESSION;
	if (strstr(path, "/jobs/") != NULL)
		return CUBE_SCOPE_JOB;
	return strchr(path, '/') != NULL ? CUBE_SCOPE_CUBE : CUBE_SCOPE_ROOT;
}

static bool verb_is(enum cube_scope scope, const char *name)
{
	for (const struct cube_verb *const *v = cube_verbs(scope); *v != NULL; v++)
		if (strcmp((*v)->name, name) == 0)
			return true;
	return false;
}

static void examples_in_the_mount_are_verbs(void **state)
{
	struct cube_buf text = CUBE_BUF(MANUAL_MAX);
	unsigned lines = 0, verbs = 0;

	(void)state;
	assert_int_equal(cube_show_readme(NULL, &text), 0);
	for (const char *at = cube_buf_str(&text); *at != '\0'; at++) {
		char name[32], path[64];

		lines += *at == '\n';
		if (sscanf(at, "echo %*['\"]%31[a-z]%*[^>\n]> %63[a-zA-Z0-9/]", name, path) != 2 &&
		    sscanf(at, "echo %31[a-z] > %63[a-zA-Z0-9/]", name, path) != 2)
			continue;
		if (strcmp(path, "ctl") != 0 && strstr(path, "/ctl") == NULL)
			continue;
		verbs++;
		if (!verb_is(path_scope(path), name))
			fail_msg("README in the mount: '%s' is no verb of %s", name, path);
	}
	assert_true(verbs >= 8);
	assert_true(lines <= 80);
	cube_buf_done(&text);
}

static void settings_are_in_the_manual(void **state)
{
	char *page = manual_read("docs/cubefs.conf.5"), *section = manual_section(page, "[daemon]");
	struct cube_domain d = {0};
	struct cube_err err = {0};
	unsigned n = 0;
	char *known;

	(void)state;
	assert_true(cube_domain_set(&d, "nothing", "1", &err) < 0);
	known = strstr(err.text, "known: ");
	assert_non_null(known);
	for (char *key = strtok_r(known + strlen("known: "), ", ", &known); key != NULL;
	     key = strtok_r(NULL, ", ", &known)) {
		char item[64];

		(void)snprintf(item, sizeof(item), ".It Cm %s\n", key);
		if (strstr(section, item) == NULL)
			fail_msg("cubefs.conf(5) has no '%s'", key);
		/* each takes a size of its own, or a share */
		assert_true(cube_domain_set(&d, key, "65536", NULL) == 0 ||
			    cube_domain_set(&d, key, "50", NULL) == 0);
		n++;
	}
	assert_int_equal(manual_items(section), n);
	free(section);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_are_in_the_manual),
		cmocka_unit_test(examples_in_the_mount_are_verbs),
		cmocka_unit_test(settings_are_in_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
