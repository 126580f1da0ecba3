/* SPDX-License-Identifier: Apache-2.0 */
/* Where the user has no more inotify watches: what is watched stays kept, and nothing else is said to be. In a user
 * namespace of its own, whose limit is its own. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT 3 /* directories of the test that can be watched */

static unsigned names, alls;

static void told_name(void *ctx, uint64_t dir, const char *name, bool again)
{
	(void)ctx;
	(void)dir;
	(void)name;
	(void)again;
	names++;
}

static void told_attr(void *ctx, uint64_t id)
{
	(void)ctx;
	(void)id;
}

static void told_all(void *ctx)
{
	(void)ctx;
	alls++;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static void limit_to(unsigned n)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", n);
	put("/proc/sys/user/max_inotify_watches", text);
}

static void test_limit(void **state)
{
	const struct cube_files_watcher to = {
		.name = told_name, .attr = told_attr, .all = told_all, .ask = told_attr};
	struct cube_files_entry e;
	struct stage s;
	unsigned kept = 0;
	char dir[32], path[48];

	(void)state;
	stage_open(&s);
	assert_true(cube_files_watch(s.space, &to) >= 0);
	stage_mkdir(&s, "d");
	limit_to(LIMIT);
	for (unsigned i = 0; i < 2 * LIMIT; i++) {
		(void)snprintf(dir, sizeof(dir), "d/%u", i);
		(void)snprintf(path, sizeof(path), "%s/name", dir);
		stage_mkdir(&s, dir);
		assert_int_equal(stage_lookup(&s, path, &e), -ENOENT);
		cube_files_tell(s.space);
		names = 0;
		stage_write(&s, path, "");
		cube_files_tell(s.space);
		assert_int_equal(names, e.keep_name);
		kept += e.keep_name;
	}
	assert_true(kept > 0 && kept <= LIMIT);
	assert_true(cube_files_watch_short(s.space));
	limit_to(2 * LIMIT); /* what is given back can be had again */
	assert_int_equal(stage_lookup(&s, "d/5/more", &e), -ENOENT);
	assert_true(e.keep_name);
	assert_false(cube_files_watch_short(s.space));
	assert_int_equal(alls, 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit)};
	char uids[32], gids[32];

	(void)snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	(void)snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return 77; /* this machine has no user namespaces for whoever runs it */
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", uids);
	put("/proc/self/gid_map", gids);
	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
