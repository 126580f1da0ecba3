/* SPDX-License-Identifier: Apache-2.0 */
/* Kills by the memory limit, counted once each. */
#include "backends/ns/oom.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OOM_TABLE (4u << 20) /* of mountinfo, of a file of groups */
#define OOM_KEY   "oom_kill "

/* ---- the file ---- */

uint64_t cube_ns_oom_read(int file)
{
	char text[4096], *at, *end;
	ssize_t n = file < 0 ? -1 : pread(file, text, sizeof(text) - 1, 0);
	uint64_t value;

	if (n <= 0)
		return UINT64_MAX;
	text[n] = '\0';
	for (at = text; at != NULL && strncmp(at, OOM_KEY, strlen(OOM_KEY)) != 0;
	     at = (at = strchr(at, '\n')) != NULL ? at + 1 : NULL)
		;
	if (at == NULL)
		return UINT64_MAX;
	at += strlen(OOM_KEY);
	value = strtoull(at, &end, 10);
	return end == at ? UINT64_MAX : value;
}

/* A hierarchy, and its file that counts. */
static const struct oom_tree {
	const char *type, *option; /* of the mount; option "": any */
	const char *controller;    /* as /proc/PID/cgroup has it */
	const char *file;
} oom_trees[] = {
	{"cgroup", "memory", "memory", "memory.oom_control"},
	{"cgroup2", "", "", "memory.events"},
};

/* Where it is mounted: ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE SUPEROPTIONS */
static bool oom_mounted(const struct oom_tree *t, const char *line, char point[PATH_MAX])
{
	const char *dash = strstr(line, " - ");
	char type[32], super[512];

	return dash != NULL && sscanf(dash + 3, "%31s %*s %511s", type, super) == 2 &&
	       strcmp(type, t->type) == 0 && strstr(super, t->option) != NULL &&
	       sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1;
}

/* Which group: NUMBER:CONTROLLERS:PATH */
static bool oom_group(const struct oom_tree *t, const char *line, char group[PATH_MAX])
{
	char controllers[256] = "";
	const char *first = strchr(line, ':'), *path = first != NULL ? strchr(first + 1, ':') : NULL;

	if (path == NULL || (size_t)(path - first) > sizeof(controllers))
		return false;
	memcpy(controllers, first + 1, (size_t)(path - first) - 1);
	return strcmp(controllers, t->controller) == 0 &&
	       (size_t)snprintf(group, PATH_MAX, "%s", path + 1) < PATH_MAX;
}

/* The first line of the file that @is takes. */
static bool oom_line(int dir, const char *file, const struct oom_tree *t,
		     bool (*is)(const struct oom_tree *t, const char *line, char out[PATH_MAX]),
		     char out[PATH_MAX])
{
	struct cube_buf text = CUBE_BUF(OOM_TABLE);
	char *save = NULL;
	bool found = false;

	if (cube_file_read(dir, file, &text) == 0 && text.len > 0)
		for (char *line = strtok_r(text.data, "\n", &save); line != NULL && !found;
		     line = strtok_r(NULL, "\n", &save))
			found = is(t, line, out);
	cube_buf_done(&text);
	return found;
}

int cube_ns_oom_file(int proc)
{
	char point[PATH_MAX], group[PATH_MAX], path[2 * PATH_MAX + 64];
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < CUBE_COUNT(oom_trees); i++) {
		const struct oom_tree *t = &oom_trees[i];

		if (!oom_line(proc, "cgroup", t, oom_group, group) ||
		    !oom_line(AT_FDCWD, "/proc/self/mountinfo", t, oom_mounted, point))
			continue;
		(void)snprintf(path, sizeof(path), "%s%s/%s", point, group, t->file);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

/* ---- watches ---- */

struct oom_watch {
	int file; /* with the count */
	uint64_t seen;
};

static pthread_mutex_t oom_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: of what follows */
static struct cube_imap *oom_watches;
static uint64_t oom_next;

static void oom_free(struct oom_watch *w)
{
	close(w->file);
	cube_free(w);
}

static uint64_t oom_read(const struct oom_watch *w)
{
	uint64_t count = w ? cube_ns_oom_read(w->file) : UINT64_MAX;

	return count != UINT64_MAX ? count : 0;
}

static uint64_t oom_enter(struct oom_watch *w)
{
	uint64_t number = 0;

	pthread_mutex_lock(&oom_lock);
	if (!oom_watches)
		oom_watches = cube_imap_new();
	if (oom_watches && cube_imap_put(oom_watches, oom_next + 1, w) == 0)
		number = ++oom_next;
	pthread_mutex_unlock(&oom_lock);
	return number;
}

void *cube_ns_oom_watch(int file)
{
	struct oom_watch *w = file < 0 ? NULL : cube_calloc(1, sizeof(*w));
	uint64_t number;

	if (!w) {
		if (file >= 0)
			close(file);
		return NULL;
	}
	w->file = file;
	w->seen = oom_read(w);
	number = oom_enter(w);
	if (number == 0)
		oom_free(w);
	return (void *)(uintptr_t)
		number; /* NOLINT(performance-no-int-to-ptr): a number that is carried along */
}

void cube_ns_oom_forget(void *watch)
{
	struct oom_watch *w = NULL;

	pthread_mutex_lock(&oom_lock);
	if (watch && oom_watches)
		w = cube_imap_take(oom_watches, (uintptr_t)watch);
	pthread_mutex_unlock(&oom_lock);
	if (w)
		oom_free(w);
}

/* With the lock held. NULL: forgotten. */
static struct oom_watch *oom_find(void *watch)
{
	return watch && oom_watches ? cube_imap_get(oom_watches, (uintptr_t)watch) : NULL;
}

uint64_t cube_ns_oom_count(void *watch)
{
	uint64_t count;

	pthread_mutex_lock(&oom_lock);
	count = oom_read(oom_find(watch));
	pthread_mutex_unlock(&oom_lock);
	return count;
}

bool cube_ns_oom_probe(void *watch, uint64_t count)
{
	struct oom_watch *w;
	bool more = false;

	pthread_mutex_lock(&oom_lock);
	w = oom_find(watch);
	if (w && w->seen < count)
		w->seen = count;
	if (w && oom_read(w) > w->seen) {
		w->seen++;
		more = true;
	}
	pthread_mutex_unlock(&oom_lock);
	return more;
}
