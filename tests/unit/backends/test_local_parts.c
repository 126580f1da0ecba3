/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of the local backend that need no sandbox: records, configuration, copies, the look for private files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/digest.h"
#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/local/bundle.h"
#include "backends/local/cgroup.h"
#include "backends/local/filter.h"
#include "backends/local/hidden.h"
#include "backends/local/record.h"
#include "backends/local/tree.h"
#include "tests/unit/backends/den.h"

static char dir[40];
static int dir_fd;

static int open_dir(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/cubefs-parts.XXXXXX");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	return 0;
}

static int close_dir(void **state)
{
	(void)state;
	(void)close(dir_fd);
	return den_remove(dir);
}

static void put(const char *path, mode_t mode, const char *text)
{
	int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void put_dir(const char *path, mode_t mode)
{
	assert_int_equal(mkdirat(dir_fd, path, 0700), 0);
	assert_int_equal(fchmodat(dir_fd, path, mode, 0), 0);
}

/* ---- records ---- */

static void record_again(void **state)
{
	struct cube_local_record r =
					 {
						 .stage = CUBE_STAGE_RUNNING,
						 .template = "ds:v1",
						 .hostname = "box",
						 .reason = "oom",
						 .limits = {.memory = UINT64_C(5) << 40,
							    .pids = 77,
							    .cpus_milli = 1500},
						 .net = CUBE_NET_OPEN,
						 .generation = 3,
						 .still = true,
						 .boot = "0d0e",
						 .init = {.pid = 4000000, .start = UINT64_C(1) << 50},
						 .net_helper = {.pid = 7, .start = 8},
					 },
				 again;

	(void)state;
	assert_int_equal(cube_local_record_read(dir_fd, &again, NULL), -ENOENT);
	assert_int_equal(cube_local_record_write(dir_fd, &r, NULL), 0);
	memset(&again, 0, sizeof(again));
	assert_int_equal(cube_local_record_read(dir_fd, &again, NULL), 0);
	assert_int_equal(again.stage, CUBE_STAGE_RUNNING);
	assert_string_equal(again.template, r.template);
	assert_string_equal(again.hostname, r.hostname);
	assert_string_equal(again.reason, r.reason);
	assert_string_equal(again.boot, r.boot);
	assert_int_equal(again.limits.memory, r.limits.memory);
	assert_int_equal(again.limits.pids, 77);
	assert_int_equal(again.limits.cpus_milli, 1500);
	assert_int_equal(again.net, CUBE_NET_OPEN);
	assert_int_equal(again.generation, 3);
	assert_true(again.still);
	assert_int_equal(again.init.pid, r.init.pid);
	assert_int_equal(again.init.start, r.init.start);
	assert_int_equal(again.net_helper.pid, 7);
}

static void record_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"version\":1}",
		"{\"version\":2,\"stage\":\"running\"}",
		"{\"version\":1,\"stage\":\"flying\"}",
		"{\"version\":\"1\",\"stage\":\"running\"}",
	};
	struct cube_local_record r;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		struct cube_err err = {0};

		put("local.json", 0600, texts[i]);
		assert_int_equal(cube_local_record_read(dir_fd, &r, &err), -EINVAL);
		assert_true(err.text[0] != '\0');
	}
}

static void processes(void **state)
{
	struct cube_local_record r = {.boot = ""};
	struct cube_local_proc p = {.pid = getpid(), .start = cube_local_proc_start(getpid())};

	(void)state;
	assert_true(p.start > 0);
	(void)cube_local_boot_id(r.boot);
	assert_true(cube_local_proc_alive(&r, &p));
	p.start++;
	assert_false(cube_local_proc_alive(&r, &p)); /* another process with that number */
	p.start--;
	r.boot[0] = r.boot[0] == 'x' ? 'y' : 'x';
	assert_false(cube_local_proc_alive(&r, &p)); /* another life of the machine */
	p = (struct cube_local_proc){.pid = 0};
	assert_false(cube_local_proc_alive(&r, &p));
	assert_int_equal(cube_local_proc_start(0x3fffffff), 0);
}

/* ---- the configuration for crun ---- */

static json_t *bundle(bool groups, uint32_t count)
{
	const struct cube_ns_ids ids = {.uid = 300000, .gid = 400000, .count = count};
	const struct cube_local_bundle b = {
		.hostname = "a\"b",
		.ids = &ids,
		.cgroup_fd = groups,
		.nproc = groups ? 0 : 99,
		.root = "/r",
		.agent = "/a",
		.filter = groups ? "Zm9v" : NULL,
		.n_binds = 1,
		.binds = {{"/from", "/to", true}},
	};
	struct cube_buf text = CUBE_BUF(CUBE_BUNDLE_MAX);
	json_t *o = NULL;

	assert_int_equal(cube_local_bundle_write(&b, &text, NULL), 0);
	assert_int_equal(cube_json_parse(cube_buf_str(&text), text.len, "bundle", &o, NULL), 0);
	cube_buf_done(&text);
	return o;
}

static bool holds(const json_t *list, const char *word)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) if (strcmp(json_string_value(v), word) == 0) return true;
	return false;
}

static void bundle_is_closed(void **state)
{
	static const char *const spaces[] = {"user", "mount", "pid", "ipc", "uts", "cgroup", "network"};
	json_t *o = bundle(true, 65536), *process = json_object_get(o, "process"),
	       *linux_ = json_object_get(o, "linux");
	json_t *caps = json_object_get(process, "capabilities"), *v;
	size_t i, n = 0;

	(void)state;
	assert_true(cube_json_bool(process, "noNewPrivileges", false));
	assert_null(json_object_get(caps, "inheritable"));
	assert_null(json_object_get(caps, "ambient"));
	assert_true(holds(json_object_get(caps, "bounding"), "CAP_CHOWN"));
	assert_false(holds(json_object_get(caps, "bounding"), "CAP_SYS_ADMIN"));
	assert_false(holds(json_object_get(caps, "bounding"), "CAP_SYS_PTRACE"));
	json_array_foreach(json_object_get(linux_, "namespaces"), i, v)
	{
		assert_string_equal(cube_json_str(v, "type", ""), spaces[i]);
		assert_null(json_object_get(v, "path"));
		n++;
	}
	assert_int_equal(n, CUBE_COUNT(spaces));
	v = json_array_get(json_object_get(linux_, "uidMappings"), 0);
	assert_int_equal(cube_json_int(v, "hostID", 0), 300000);
	assert_int_equal(cube_json_int(v, "containerID", -1), 0);
	v = json_array_get(json_object_get(linux_, "gidMappings"), 0);
	assert_int_equal(cube_json_int(v, "hostID", 0), 400000);
	assert_string_equal(cube_json_str(o, "hostname", ""), "a\"b");
	assert_true(holds(json_object_get(process, "args"), "--cgroup-fd"));
	json_decref(o);
	o = bundle(false, 1);
	process = json_object_get(o, "process");
	assert_false(holds(json_object_get(process, "args"), "--cgroup-fd"));
	n = 0;
	json_array_foreach(json_object_get(process, "rlimits"), i, v) n +=
		strcmp(cube_json_str(v, "type", ""), "RLIMIT_NPROC") == 0 &&
		cube_json_int(v, "hard", 0) == 99;
	assert_int_equal(n, 1);
	json_decref(o);
}

static void seccomp_denies(void **state)
{
	static const char *const never[] = {"mount",
					    "umount2",
					    "setns",
					    "pivot_root",
					    "bpf",
					    "keyctl",
					    "add_key",
					    "open_tree",
					    "move_mount",
					    "fsopen",
					    "io_uring_setup",
					    "io_uring_enter",
					    "userfaultfd",
					    "perf_event_open",
					    "init_module",
					    "reboot",
					    "kexec_load",
					    "open_by_handle_at",
					    "acct",
					    "swapon",
					    "quotactl",
					    "unshare",
					    "clone"};
	json_t *o = bundle(true, 65536), *s = json_object_get(json_object_get(o, "linux"), "seccomp"), *rule;
	size_t i;

	(void)state;
	assert_string_equal(cube_json_str(s, "defaultAction", ""), "SCMP_ACT_ERRNO");
	assert_int_equal(cube_json_int(s, "defaultErrnoRet", 0), EPERM);
	json_array_foreach(json_object_get(s, "syscalls"), i, rule)
	{
		assert_string_equal(cube_json_str(rule, "action", ""), "SCMP_ACT_ALLOW");
		for (size_t k = 0; !json_object_get(rule, "args") && k < CUBE_COUNT(never); k++)
			assert_false(holds(json_object_get(rule, "names"), never[k]));
	}
	json_decref(o);
}

/* ---- copies ---- */

static void public_copy(void **state)
{
	const struct cube_ns_ids ids = {.uid = getuid(), .gid = getgid(), .count = 1};
	struct cube_local_tree t = {.ids = &ids, .public_only = true, .max_file = 100};
	cube_auto_fd from = -1, to = -1;
	struct stat st;

	(void)state;
	put_dir("from", 0755);
	put_dir("to", 0755);
	put("from/all", 04755, "1");
	put("from/mine", 0640, "2");
	put_dir("from/closed", 0711);
	put("from/closed/f", 0644, "3");
	put_dir("from/open", 0755);
	put("from/open/f", 0444, "4");
	put("from/large", 0644,
	    "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
	    "6789.");
	assert_int_equal(symlinkat("mine", dir_fd, "from/link"), 0);
	assert_int_equal(mkfifoat(dir_fd, "from/fifo", 0644), 0);
	from = openat(dir_fd, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = openat(dir_fd, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(cube_local_tree_copy(&t, from, to, NULL), 0);
	assert_int_equal(fstatat(to, "all", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0755); /* setuid is dropped */
	assert_int_equal(faccessat(to, "mine", F_OK, 0), -1);
	assert_int_equal(faccessat(to, "closed", F_OK, 0), -1);
	assert_int_equal(faccessat(to, "large", F_OK, 0), -1);
	assert_int_equal(faccessat(to, "fifo", F_OK, 0), -1);
	assert_int_equal(fstatat(to, "open/f", &st, 0), 0);
	assert_int_equal(fstatat(to, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(t.skipped, 2);
}

static void private_files(void **state)
{
	struct cube_buf list = CUBE_BUF(65536);
	char root[64], expected[64];
	unsigned n = 0;

	(void)state;
	put_dir("walk", 0755);
	put_dir("walk/a", 0755);
	put("walk/a/open", 0644, "");
	put("walk/a/secret", 0600, "");
	put("walk/group", 0640, "");
	put_dir("walk/closed", 0750);
	put("walk/closed/f", 0644, "");
	assert_int_equal(symlinkat("/etc/shadow", dir_fd, "walk/link"), 0);
	(void)snprintf(root, sizeof(root), "%s/walk", dir);
	assert_int_equal(cube_local_hidden_walk(root, &list), 0);
	for (size_t at = 0; at < list.len; at += strlen(list.data + at) + 1) {
		static const char *const names[] = {"a/secret", "group", "closed"};
		bool known = false;

		for (size_t i = 0; i < CUBE_COUNT(names); i++) {
			(void)snprintf(expected, sizeof(expected), "%s/%s", root, names[i]);
			known = known || strcmp(list.data + at, expected) == 0;
		}
		assert_true(known);
		n++;
	}
	assert_int_equal(n, 3);
	cube_buf_done(&list);
	assert_int_equal(cube_local_hidden_walk("/nonexistent", &list), 0);
	assert_int_equal(list.len, 0);
}

static void digest(void **state)
{
	struct cube_digest *d = cube_digest_new();
	char text[CUBE_DIGEST_TEXT];

	(void)state;
	assert_non_null(d);
	cube_digest_add(d, "a", 1);
	cube_digest_add(d, "bc", 2);
	assert_string_equal(cube_digest_end(d, text),
			    "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	cube_digest_free(d);
}

/* ---- the compiled filter ---- */

/* Of the first sandbox that left a sound one; the list stands beside it for who does not know of it. */
static void filter_is_kept(void **state)
{
	static const struct {
		const char *name, *code, *text;
	} all[] = {
		{"none", NULL, NULL},
		{"empty", "", NULL},
		{"cut", "1234567", NULL},
		{"first", "12345678", "MTIzNDU2Nzg="},
		{"second", "ABCDEFGHIJKLMNOP", "MTIzNDU2Nzg="},
	};
	struct cube_local_filter filter = {NULL};
	json_t *o = bundle(false, 1);
	char path[64];

	(void)state;
	assert_null(json_object_get(o, "annotations"));
	json_decref(o);
	o = bundle(true, 1);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(o, "annotations"), CUBE_FILTER_ANNOTATION)),
		"Zm9v");
	assert_non_null(json_object_get(json_object_get(o, "linux"), "seccomp"));
	json_decref(o);
	put_dir("crun", 0700);
	for (size_t i = 0; i < CUBE_COUNT(all); i++) {
		(void)snprintf(path, sizeof(path), "crun/%s", all[i].name);
		put_dir(path, 0700);
		(void)snprintf(path, sizeof(path), "crun/%s/seccomp.bpf", all[i].name);
		if (all[i].code)
			put(path, 0600, all[i].code);
		cube_local_filter_keep(&filter, dir_fd, all[i].name);
		if (all[i].text)
			assert_string_equal(cube_local_filter_text(&filter), all[i].text);
		else
			assert_null(cube_local_filter_text(&filter));
	}
	cube_local_filter_done(&filter);
	cube_local_filter_done(&filter);
	assert_null(cube_local_filter_text(&filter));
}

/* ---- control groups ---- */

static int enter_group(void *doors)
{
	return cube_local_doors_enter(doors);
}

static unsigned count_lines_with(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		n++;
	return n;
}

/* A child is in the group before its program begins, in every tree there is, and in no other. */
static void way_in(void **state)
{
	static const char id[] = "00000000000cafe0";
	const char *const argv[] = {"cat", "/proc/self/cgroup", NULL};
	const struct cube_ns_ids ids = {.uid = 100000, .gid = 100000, .count = 65536};
	struct cube_buf text = CUBE_BUF(65536);
	struct cube_local_cgroups groups;
	struct cube_local_doors doors;
	struct cube_err err = {0};
	struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = -1, .text = &text};
	unsigned trees = 0;
	int status = -1;

	(void)state;
	cube_local_cgroups_open(&groups);
	trees += groups.v2 >= 0;
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		trees += groups.v1[i] >= 0;
	if (trees == 0) {
		cube_local_cgroups_close(&groups);
		skip();
	}
	assert_int_equal(cube_local_group_make(&groups, id, &ids, &err), 0);
	assert_int_equal(cube_local_group_doors(&groups, id, &doors, &err), 0);
	s.setup = enter_group;
	s.setup_ctx = &doors;
	s.group = doors.v2 >= 0 ? &doors.v2 : NULL;
	if (cube_spawn_run(&s, NULL, &status, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(status, 0);
	assert_int_equal(count_lines_with(cube_buf_str(&text), "/cubefs/00000000000cafe0\n"), trees);
	cube_buf_done(&text);
	cube_local_doors_close(&doors);
	cube_local_doors_close(&doors);
	assert_int_equal(cube_local_group_remove(&groups, id, &err), 0);
	assert_int_equal(cube_local_group_doors(&groups, id, &doors, &err), -ENOENT);
	assert_non_null(strstr(err.text, "00000000000cafe0"));
	cube_local_cgroups_close(&groups);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(record_again, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(record_damaged, open_dir, close_dir),
		cmocka_unit_test(processes),
		cmocka_unit_test(bundle_is_closed),
		cmocka_unit_test_setup_teardown(filter_is_kept, open_dir, close_dir),
		cmocka_unit_test(seccomp_denies),
		cmocka_unit_test_setup_teardown(public_copy, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(private_files, open_dir, close_dir),
		cmocka_unit_test(digest),
		cmocka_unit_test(way_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
