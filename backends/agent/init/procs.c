/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of /proc. */
#include "backends/agent/init/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/agent/init/dir.h"

#define PROCS_MAX    (1u << 20) /* more than the kernel's own limit of processes */
#define PROCS_FLAGS  7          /* when procs_parse stands before FLAGS */
#define PROCS_KERNEL 0x00200000 /* of FLAGS: PF_KTHREAD */

static int procs_fd = -1;

int init_procs_open(void)
{
	procs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return procs_fd < 0 ? -errno : 0;
}

bool init_procs_slurp(int dir, const char *name, char *out, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	(void)close(fd);
	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

/* "PID (any thing) S PPID PGRP SID TTY TPGID FLAGS 4xFAULTS 4xTIMES PRIO NICE THREADS 0 START ...": the name
 * may hold any byte, so what follows is found from its last parenthesis. A thread of the kernel, as the first namespace of a
 * machine shows them, is nothing that runs here. */
static bool procs_parse(const char *text, struct init_proc *ret)
{
	const char *at = strrchr(text, ')');
	char *end;

	if (at == NULL || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
		return false;
	ret->state = at[2];
	ret->ppid = (pid_t)strtol(at + 4, &end, 10);
	for (int field = 4; field < 21; field++) {
		end = strchr(end + (*end == ' '), ' ');
		if (end == NULL || (field == PROCS_FLAGS && (strtoul(end + 1, NULL, 10) & PROCS_KERNEL) != 0))
			return false;
	}
	ret->start = strtoull(end + 1, NULL, 10);
	return true;
}

int init_procs_add(struct init_procs *p, const struct init_proc *one)
{
	if (p->len == p->cap) {
		size_t cap = p->cap > 0 ? p->cap * 2 : 64;
		struct init_proc *all = cap <= PROCS_MAX ? realloc(p->all, cap * sizeof(*all)) : NULL;

		if (all == NULL)
			return -ENOMEM;
		p->all = all;
		p->cap = cap;
	}
	p->all[p->len++] = *one;
	return 0;
}

static int procs_read_one(struct init_procs *p, const char *name)
{
	struct init_proc one = {.pid = (pid_t)strtol(name, NULL, 10)};
	char path[64];
	char text[1024];

	if (one.pid <= 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%d/stat", (int)one.pid);
	if (!init_procs_slurp(procs_fd, path, text, sizeof(text)) || !procs_parse(text, &one))
		return 0; /* it is gone */
	return init_procs_add(p, &one);
}

static int procs_order(const void *a, const void *b)
{
	const struct init_proc *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* By number, for procs_by_pid. The kernel lists them so. */
static void procs_sort(struct init_procs *p)
{
	for (size_t i = 1; i < p->len; i++) {
		if (p->all[i - 1].pid > p->all[i].pid) {
			qsort(p->all, p->len, sizeof(*p->all), procs_order);
			return;
		}
	}
}

int init_procs_read(struct init_procs *p)
{
	DIR *dir = init_dir_open(openat(procs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const char *name;
	int r = 0;

	p->len = 0;
	if (dir == NULL)
		return -errno;
	while (r == 0 && (name = init_dir_next(dir)) != NULL) {
		if (name[0] >= '1' && name[0] <= '9')
			r = procs_read_one(p, name);
	}
	(void)closedir(dir);
	procs_sort(p);
	return r;
}

static struct init_proc *procs_by_pid(const struct init_procs *p, pid_t pid)
{
	size_t low = 0, high = p->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->all[mid].pid == pid)
			return &p->all[mid];
		if (p->all[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

void init_procs_mark_below(struct init_procs *p, pid_t pid)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < p->len; i++) {
			struct init_proc *one = &p->all[i];
			const struct init_proc *parent = procs_by_pid(p, one->ppid);

			if (one->mark || one->pid == pid || parent == NULL)
				continue;
			if (parent->pid == pid || parent->mark)
				one->mark = more = true;
		}
	}
}

void init_procs_unmark(struct init_procs *p, const struct init_procs *who)
{
	bool more = who->len > 0;

	for (size_t i = 0; i < p->len; i++)
		p->all[i].left = init_procs_find(who, p->all[i].pid, p->all[i].start) != NULL;
	while (more) {
		more = false;
		for (size_t i = 0; i < p->len; i++) {
			const struct init_proc *parent = procs_by_pid(p, p->all[i].ppid);

			if (p->all[i].left || parent == NULL || !parent->left)
				continue;
			p->all[i].left = more = true;
		}
	}
	for (size_t i = 0; i < p->len; i++)
		p->all[i].mark = p->all[i].mark && !p->all[i].left;
}

const struct init_proc *init_procs_find(const struct init_procs *p, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < p->len; i++) {
		if (p->all[i].pid == pid && p->all[i].start == start)
			return &p->all[i];
	}
	return NULL;
}

void init_procs_done(struct init_procs *p)
{
	free(p->all);
	*p = (struct init_procs){0};
}

bool init_proc_alive(const struct init_proc *one)
{
	return one->state != 'Z' && one->state != 'X';
}

static bool procs_children(pid_t pid, char *out, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/children", (int)pid, (int)pid);
	return init_procs_slurp(procs_fd, path, out, size);
}

bool init_procs_childless(pid_t pid)
{
	char text[64];

	return procs_children(pid, text, sizeof(text)) && text[0] == '\0';
}

bool init_procs_only_child(pid_t pid, pid_t child)
{
	char text[64];
	char expect[32];

	(void)snprintf(expect, sizeof(expect), "%d ", (int)child);
	return procs_children(pid, text, sizeof(text)) && strcmp(text, expect) == 0;
}

bool init_procs_cwd(pid_t pid, char *out, size_t size)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/cwd", (int)pid);
	n = readlinkat(procs_fd, path, out, size - 1);
	if (n <= 0 || out[0] != '/')
		return false;
	out[n] = '\0';
	return true;
}

int init_procs_dir(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "%d", (int)pid);
	return openat(procs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
