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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_number_of_others),
		cmocka_unit_test(check_own_number),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
