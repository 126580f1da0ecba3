/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of users and the user namespaces that map them. */
#include "backends/local/ids.h"

#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "backends/base/spawn.h"
#include "backends/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDS_RANGE    65536u
#define IDS_FILE_MAX (1u << 20)

struct ids_line {
	unsigned inside, outside, count;
};

/* Lines of /proc/self/uid_map or gid_map; how many. */
static unsigned ids_read_map(const char *file, struct ids_line *lines, unsigned max)
{
	struct cube_buf text = CUBE_BUF(65536);
	unsigned n = 0;

	if (cube_file_read(AT_FDCWD, file, &text) == 0) {
		const char *p = cube_buf_str(&text);

		while (n < max) {
			char *end;

			lines[n].inside = (unsigned)strtoul(p, &end, 10);
			if (end == p)
				break;
			lines[n].outside = (unsigned)strtoul(end, &end, 10);
			lines[n].count = (unsigned)strtoul(end, &end, 10);
			p = end;
			n++;
		}
	}
	cube_buf_done(&text);
	return n;
}

bool cube_local_ids_initial(void)
{
	struct ids_line line;

	return ids_read_map("/proc/self/uid_map", &line, 1) == 1 && line.inside == 0 && line.outside == 0 &&
	       line.count == UINT32_MAX;
}

/* How many numbers from 1 on are mapped without a gap. */
static uint32_t ids_above_zero(const char *file)
{
	struct ids_line lines[16];
	unsigned n = ids_read_map(file, lines, CUBE_COUNT(lines));
	uint32_t next = 1;

	for (unsigned i = 0; i < n; i++)
		if (lines[i].inside <= next && lines[i].count > next - lines[i].inside)
			next = lines[i].inside + lines[i].count;
	return next - 1;
}

void cube_local_ids_of_map(struct cube_ns_ids *ret)
{
	uint32_t uids = ids_above_zero("/proc/self/uid_map");
	uint32_t gids = ids_above_zero("/proc/self/gid_map");
	uint32_t count = uids < gids ? uids : gids;

	if (count > IDS_RANGE)
		count = IDS_RANGE;
	if (count > 1)
		*ret = (struct cube_ns_ids){.uid = 1, .gid = 1, .count = count};
	else
		*ret = (struct cube_ns_ids){.count = 1};
}

bool cube_local_ids_subordinate(const char *file, const char *name, uint32_t id, uint32_t *ret_first,
				uint32_t *ret_count)
{
	struct cube_buf text = CUBE_BUF(IDS_FILE_MAX);
	char number[16], *save = NULL;
	bool found = false;

	(void)snprintf(number, sizeof(number), "%u", id);
	if (cube_file_read(AT_FDCWD, file, &text) < 0 || text.len == 0) {
		cube_buf_done(&text);
		return false;
	}
	for (char *line = strtok_r(text.data, "\n", &save); line && !found;
	     line = strtok_r(NULL, "\n", &save)) {
		char *first = strchr(line, ':'), *count = first ? strchr(first + 1, ':') : NULL;
		uint64_t a, n;

		if (!count)
			continue;
		*first++ = 0;
		*count++ = 0;
		if (strcmp(line, name) != 0 && strcmp(line, number) != 0)
			continue;
		found = cube_num_u64(first, UINT32_MAX, &a) == 0 &&
			cube_num_u64(count, UINT32_MAX, &n) == 0 && n > 1;
		if (found) {
			*ret_first = (uint32_t)a;
			*ret_count = n > IDS_RANGE ? IDS_RANGE : (uint32_t)n;
		}
	}
	cube_buf_done(&text);
	return found;
}

/* newuidmap PID 0 UID 1 1 FIRST COUNT; true where it worked. */
static bool ids_run_map(const char *program, pid_t pid, uint32_t own, uint32_t first, uint32_t count)
{
	char words[5][16];
	const char *argv[] = {program, words[0], "0", words[1], "1", "1", words[2], words[3], NULL};
	const struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = -1, .timeout_ms = 10000};
	int status;

	(void)snprintf(words[0], sizeof(words[0]), "%d", (int)pid);
	(void)snprintf(words[1], sizeof(words[1]), "%u", own);
	(void)snprintf(words[2], sizeof(words[2]), "%u", first);
	(void)snprintf(words[3], sizeof(words[3]), "%u", count);
	return cube_spawn_run(&s, NULL, &status, NULL) == 0 && status == 0;
}

/* In a child that stayed outside: gives its parent the subordinate ranges of both kinds, or none. */
static bool ids_map_parent(void)
{
	/* cppcheck-suppress getpwuidCalled ; there is one thread yet */
	const struct passwd *pw = getpwuid(getuid()); /* NOLINT(concurrency-mt-unsafe): one thread */
	const char *name = pw ? pw->pw_name : "";
	uint32_t uid, uids, gid, gids;

	if (!cube_local_ids_subordinate("/etc/subuid", name, getuid(), &uid, &uids) ||
	    !cube_local_ids_subordinate("/etc/subgid", name, getuid(), &gid, &gids))
		return false;
	return ids_run_map("newgidmap", getppid(), getgid(), gid, gids) &&
	       ids_run_map("newuidmap", getppid(), getuid(), uid, uids);
}

static int ids_map_alone(uid_t uid, gid_t gid)
{
	char text[32];
	int rc;

	(void)cube_ns_userns_write(getpid(), "setgroups",
				   "deny"); /* refused where newgidmap was there before */
	(void)snprintf(text, sizeof(text), "0 %u 1", gid);
	(void)cube_ns_userns_write(getpid(), "gid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u 1", uid);
	rc = cube_ns_userns_write(getpid(), "uid_map", text);
	return rc;
}

/* Makes the namespaces; @go is closed then, and @done is what the child outside has to say. */
static int ids_unshare(int go[2], int done, uid_t uid, gid_t gid, struct cube_err *err)
{
	char mapped = 0;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return cube_fail(
			err, errno == EINVAL ? -EIO : -errno,
			"cannot make a user namespace (%s): kernel.unprivileged_userns_clone must be 1 "
			"and user.max_user_namespaces above 0",
			cube_errno_text(errno));
	if (write(go[1], "", 1) != 1 || read(done, &mapped, 1) != 1)
		mapped = 0;
	if (!mapped && ids_map_alone(uid, gid) < 0)
		return cube_fail_errno(err, "cannot map the user in a user namespace");
	return 0;
}

int cube_local_ids_enter(struct cube_err *err)
{
	int go[2] = {-1, -1}, done[2] = {-1, -1}, rc;
	uid_t uid = getuid();
	gid_t gid = getgid();
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
		return cube_fail_errno(err, "cannot make a pipe");
	pid = fork();
	if (pid == 0) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) == 1) {
			c = ids_map_parent();
			(void)!write(done[1], &c, 1);
		}
		_exit(0);
	}
	close(done[1]);
	rc = pid < 0 ? cube_fail_errno(err, "cannot fork") : ids_unshare(go, done[0], uid, gid, err);
	close(go[0]);
	close(go[1]);
	close(done[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return rc;
}

static ino_t ids_inode(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* From @fd, the user namespace of a sandbox, up to the one right below our own (there may be one between,
 * enclose.h). Takes @fd over. */
static int ids_climb(int fd)
{
	cube_auto_fd here = fd, own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	for (;;) {
		cube_auto_fd above = ioctl(here, NS_GET_PARENT);

		if (above < 0)
			return -errno;
		if (ids_inode(above) == ids_inode(own))
			return cube_steal_fd(&here);
		close(here);
		here = cube_steal_fd(&above);
	}
}

int cube_local_ids_join(pid_t init, struct cube_err *err)
{
	cube_auto_fd ours = -1;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)init);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH
				       : cube_fail_errno(err, "cannot open the user namespace of process %d",
							 (int)init);
	ours = ids_climb(fd);
	if (ours < 0)
		return cube_fail(err, ours, "cannot find the user namespace around process %d: %s", (int)init,
				 cube_errno_text(ours));
	if (setns(ours, CLONE_NEWUSER) < 0)
		return cube_fail_errno(err, "cannot enter the user namespace of the running sandboxes");
	if (unshare(CLONE_NEWNS) < 0)
		return cube_fail_errno(err, "cannot make a mount namespace");
	return 0;
}
