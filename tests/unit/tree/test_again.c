/* SPDX-License-Identifier: Apache-2.0 */
/* A worker is killed between a request and its answer: the next one is asked again, and does nothing twice, and nothing
 * of somebody else's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cube.h"
#include "ctl/job.h"
#include "fs/tree/tree_priv.h"
#include "tests/unit/tree/rig.h"

static int up(void **state)
{
	int code = rig_up_kept(state);

	rig_cube("dev");
	return code;
}

/* A close that the worker before had begun. */
static int flush_again(struct cube_handle *h, uint64_t unique)
{
	struct rig_call c;

	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	c.r.unique = unique;
	c.r.again = true;
	return rig_run(&c);
}

static uint64_t next_job(void)
{
	uint64_t number;

	cube_domain_enter(rig.domain);
	number = cube_domain_find(rig.domain, "dev")->next_job;
	cube_domain_leave(rig.domain);
	return number;
}

/* It had noted the number of the job that it was about to make, and did not come to it. */
static void check_number_of_others(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo mine\n"), 10);
	cube_kept_intent(h, 4242, next_job());
	h = rig_next_worker(h);
	assert_non_null(h);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "other"), 0);
	assert_int_equal(rig_echo("echo other", "dev/jobs/other/cmd"), 0);
	assert_int_equal(flush_again(h, 4242), 0);
	assert_string_equal(rig_cat("dev/exec"), "mine\n");
	rig_release(h);
}

/* It had made the job: that is waited for, and not run once more. */
static void check_own_number(void **state)
{
	struct cube_handle *h;
	struct rig_call c;
	uint64_t before;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "await /workspace/go; echo once\n"), 31);
	before = next_job();
	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	rig_start(&c);
	assert_false(rig_over(&c));
	h = rig_next_worker(h);
	assert_non_null(h);
	rig_go("dev", "go");
	assert_int_equal(flush_again(h, c.r.unique), 0);
	assert_int_equal(next_job(), before + 2); /* and the one that let it go on */
	rig_release(h);
}

/* What had been opened half is opened anew; what was open reads on. */
static void check_half_open(void **state)
{
	struct cube_handle *h;
	struct rig_call c;

	(void)state;
	assert_int_equal(rig_echo("echo output", "dev/exec"), 0);
	assert_int_equal(rig_open("dev/exec", O_RDONLY, &h), 0);
	h = rig_next_worker(h);
	assert_non_null(h);
	assert_string_equal(rig_read(&c, h, 0), "output\n");
	atomic_store(&h->kept->whole, 0);
	assert_null(rig_next_worker(h));
}

/* ---- verbs ---- */

/* Writes @line to @path; the worker is killed when it was done, right before that is noted, and the next one is asked
 * again: what it answers. */
static int verb_again(const char *path, const char *line)
{
	struct cube_handle *h;
	struct rig_call c;
	uint64_t unique;
	int code;

	assert_int_equal(rig_open(path, O_WRONLY, &h), 0);
	rig_fill(&c, CUBE_REQ_WRITE, 0);
	c.r.handle = h;
	c.r.data = line;
	c.r.size = strlen(line);
	unique = c.r.unique;
	assert_int_equal(rig_run(&c), strlen(line));
	h->kept->state[atomic_load(&h->kept->which) & 1].in_len = (uint32_t)strlen(line);
	h = rig_next_worker(h);
	assert_non_null(h);
	rig_fill(&c, CUBE_REQ_WRITE, 0);
	c.r.handle = h;
	c.r.data = line;
	c.r.size = strlen(line);
	c.r.unique = unique;
	c.r.again = true;
	code = rig_run(&c);
	rig_release(h);
	return code;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

static void check_reset(void **state)
{
	(void)state;
	assert_non_null(strstr(rig_cat("dev/status"), "generation 0\n"));
	assert_int_equal(verb_again("dev/ctl", "reset\n"), 6);
	assert_non_null(strstr(rig_cat("dev/status"), "generation 1\n"));
	assert_int_equal(rig_echo("reset", "dev/ctl"), 0);
	assert_non_null(strstr(rig_cat("dev/status"), "generation 2\n"));
}

static void check_restart(void **state)
{
	unsigned before = count(rig_cat("events"), "\"running\"");

	(void)state;
	assert_int_equal(verb_again("dev/ctl", "restart\n"), 8);
	assert_int_equal(count(rig_cat("events"), "\"running\""), before + 1);
}

/* Whether a signal was sent nobody can see: then that is said. */
static void check_kill(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("echo shell", "dev/exec"), 0);
	assert_int_equal(verb_again("dev/ctl", "kill USR1\n"), -EIO);
	assert_non_null(strstr(rig_cat("dev/error"), "whether it was done cannot be told"));
	assert_int_equal(verb_again("dev/sessions/main/ctl", "reset\n"), -EIO);
	assert_int_equal(rig_echo("kill USR1", "dev/ctl"), 0);
}

/* Of two, one was gone. */
static void check_destroy(void **state)
{
	(void)state;
	rig_cube("one");
	rig_cube("two");
	assert_int_equal(verb_again("ctl", "destroy one two\n"), 16);
	assert_int_equal(rig_lookup("one"), -ENOENT);
	assert_int_equal(rig_lookup("two"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_number_of_others), cmocka_unit_test(check_own_number),
		cmocka_unit_test(check_half_open),        cmocka_unit_test(check_reset),
		cmocka_unit_test(check_restart),          cmocka_unit_test(check_kill),
		cmocka_unit_test(check_destroy),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
