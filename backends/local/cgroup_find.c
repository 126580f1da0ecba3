/* SPDX-License-Identifier: Apache-2.0 */
/* Which control groups this machine has, and where ours can be. */
#include "backends/local/cgroup.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIND_MAX (4u << 20)

static const char *const ctl_names[CUBE_CTL_COUNT] = {
	[CUBE_CTL_MEMORY] = "memory",   [CUBE_CTL_PIDS] = "pids",       [CUBE_CTL_CPU] = "cpu",
	[CUBE_CTL_FREEZER] = "freezer", [CUBE_CTL_CPUACCT] = "cpuacct",
};

struct find_mounts {
	char v2[PATH_MAX];
	char v1[CUBE_CTL_COUNT][PATH_MAX];
};

static bool find_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || p[-1] == ',' || p[-1] == ' ') && strchr(", \n", p[n]) != NULL)
			return true;
	return false;
}

/* One line of mountinfo: ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE SUPEROPTIONS */
static void find_line(struct find_mounts *m, char *line)
{
	char point[PATH_MAX], type[32], super[512];
	char *dash = strstr(line, " - ");

	if (!dash || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 ||
	    sscanf(dash + 3, "%31s %*s %511s", type, super) != 2)
		return;
	if (strcmp(type, "cgroup2") == 0 && !*m->v2)
		(void)snprintf(m->v2, sizeof(m->v2), "%s", point);
	if (strcmp(type, "cgroup") != 0)
		return;
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		if (find_word(super, ctl_names[i]) && !*m->v1[i])
			(void)snprintf(m->v1[i], sizeof(m->v1[i]), "%s", point);
}

static void find_mounts(struct find_mounts *m)
{
	struct cube_buf text = CUBE_BUF(FIND_MAX);
	char *save = NULL;

	if (cube_file_read(AT_FDCWD, "/proc/self/mountinfo", &text) == 0 && text.len > 0)
		for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			find_line(m, line);
	cube_buf_done(&text);
}

/* Our own place in the v2 tree, from its top: "/user.slice/..."; "" if unknown. */
static void find_own(char *out, size_t size)
{
	struct cube_buf text = CUBE_BUF(65536);
	const char *at;

	*out = 0;
	if (cube_file_read(AT_FDCWD, "/proc/self/cgroup", &text) == 0) {
		at = strncmp(cube_buf_str(&text), "0::", 3) == 0 ? cube_buf_str(&text)
								 : strstr(cube_buf_str(&text), "\n0::");
		if (at) {
			at += strcspn(at, ":") + 2;
			(void)snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
		}
	}
	cube_buf_done(&text);
}

static bool find_may_divide(const char *dir)
{
	cube_auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0;
}

/* The highest directory above our own place that was given to us; root's is the top. A process may be moved
 * only where the nearest common ancestor may be written, so nothing beside that path is of use. */
static bool find_delegated(const char *mount, char *out, size_t size)
{
	char own[PATH_MAX], best[PATH_MAX] = "";
	bool found = false;

	if (find_may_divide(mount)) {
		(void)snprintf(out, size, "%s", mount);
		return true;
	}
	find_own(own, sizeof(own));
	while (*own) {
		if ((size_t)snprintf(out, size, "%s%s", mount, own) >= size || !find_may_divide(out))
			break;
		(void)snprintf(best, sizeof(best), "%s", out);
		found = true;
		*strrchr(own, '/') = 0;
	}
	(void)snprintf(out, size, "%s", best);
	return found;
}

static void find_enable(int dir, const char *name)
{
	cube_auto_fd fd = openat(dir, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);
	char word[16];

	(void)snprintf(word, sizeof(word), "+%s", name);
	if (fd >= 0)
		(void)!write(fd, word, strlen(word));
}

static void find_v2(struct cube_local_cgroups *c, const char *mount)
{
	struct cube_buf has = CUBE_BUF(4096);
	char top[PATH_MAX];
	cube_auto_fd dir = -1;

	if (!find_delegated(mount, top, sizeof(top))) {
		(void)snprintf(c->why, sizeof(c->why), "no control group is delegated to this user");
		return;
	}
	dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < CUBE_CTL_FREEZER; i++)
		find_enable(dir, ctl_names[i]);
	if (dir < 0 || cube_file_mkdir(dir, "cubefs", 0755, &c->v2) < 0) {
		(void)snprintf(c->why, sizeof(c->why), "cannot make a group in %.120s", top);
		return;
	}
	c->v2_has[CUBE_CTL_FREEZER] = faccessat(c->v2, "cgroup.freeze", F_OK, 0) == 0;
	c->v2_has[CUBE_CTL_CPUACCT] = faccessat(c->v2, "cpu.stat", F_OK, 0) == 0;
	for (size_t i = 0; i < CUBE_CTL_FREEZER; i++)
		find_enable(c->v2, ctl_names[i]);
	if (cube_file_read(c->v2, "cgroup.subtree_control", &has) == 0)
		for (size_t i = 0; i < CUBE_CTL_FREEZER; i++)
			c->v2_has[i] = find_word(cube_buf_str(&has), ctl_names[i]);
	cube_buf_done(&has);
}

static void find_v1(struct cube_local_cgroups *c, size_t i, const char *mount)
{
	cube_auto_fd dir = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd ours = -1;

	if (dir >= 0 && cube_file_mkdir(dir, "cubefs", 0755, &ours) == 0 &&
	    faccessat(ours, ".", W_OK, AT_EACCESS) == 0)
		c->v1[i] = cube_steal_fd(&ours);
	else if (!*c->why)
		(void)snprintf(c->why, sizeof(c->why), "cannot make a group in %.120s", mount);
}

void cube_local_cgroups_open(struct cube_local_cgroups *c)
{
	static struct find_mounts m; /* large; one thread calls this, at start */

	memset(&m, 0, sizeof(m));
	memset(c, 0, sizeof(*c));
	c->v2 = -1;
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		c->v1[i] = -1;
	find_mounts(&m);
	if (!*m.v2 && !*m.v1[CUBE_CTL_MEMORY])
		(void)snprintf(c->why, sizeof(c->why), "no control groups are mounted here");
	if (*m.v2)
		find_v2(c, m.v2);
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		if (*m.v1[i] && !(i >= CUBE_CTL_FREEZER && c->v2_has[i]))
			find_v1(c, i, m.v1[i]);
}

void cube_local_cgroups_close(struct cube_local_cgroups *c)
{
	if (c->v2 >= 0)
		close(cube_steal_fd(&c->v2));
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		if (c->v1[i] >= 0)
			close(cube_steal_fd(&c->v1[i]));
}

bool cube_local_cgroups_has(const struct cube_local_cgroups *c, enum cube_local_ctl what)
{
	return c->v1[what] >= 0 || (c->v2 >= 0 && c->v2_has[what]);
}
