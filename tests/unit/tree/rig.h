/* SPDX-License-Identifier: Apache-2.0 */
/* A tree over a domain with the mem backend, without a mount: requests are made as a front end makes them. */
#ifndef CUBEFS_TESTS_UNIT_TREE_RIG_H
#define CUBEFS_TESTS_UNIT_TREE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fs/keep/keep.h"
#include "fs/tree/tree.h"

struct rig {
	struct cube_loop *loop;
	struct cube_domain *domain;
	struct cube_tree *tree;
	struct cube_keep *keep; /* rig_up_kept: what outlives a worker */
};

extern struct rig rig;

/* cmocka's set-up and tear-down of a group: an empty state directory, a running loop, a tree. */
int rig_up(void **state);
int rig_up_kept(void **state);
int rig_down(void **state);
/* The worker is killed at this very moment, and the next one takes the tree over; the domain stays as it is. What is
 * open goes on as what this gives for it: NULL, it is lost. The handles of before are not to be used any more. */
struct cube_handle *rig_next_worker(const struct cube_handle *open);

/* A request under way. */
struct rig_call {
	struct cube_req r;
	bool over, real;
	int result;
	char name[256], new_name[256];
	char list[8192]; /* readdir: names, a blank behind each */
	char out[65536]; /* read, readlink */
	size_t out_len;
};

/* Fills a call of this process; the test sets what else it needs, and starts it. */
void rig_fill(struct rig_call *c, enum cube_req_op op, uint64_t node);
void rig_start(struct rig_call *c);
/* Waits for its answer (the test fails after 10 s) and gives its result. */
int rig_end(struct rig_call *c);
/* Is it answered by now? */
bool rig_over(struct rig_call *c);

/* ---- in one go ---- */

int rig_run(struct rig_call *c);
/* Node of a path below the root ("dev/jobs/7/cmd"), looked up afresh; 0: not there. */
uint64_t rig_node(const char *path);
int rig_lookup(const char *path);
int rig_on(enum cube_req_op op, const char *dir, const char *name); /* mkdir, rmdir, unlink, create ... */
/* Open, with open(2)'s flags; *ret is to be closed with rig_close. */
int rig_open(const char *path, int flags, struct cube_handle **ret);
int rig_open_by(pid_t pid, const char *path, int flags, struct cube_handle **ret);
int rig_write(struct cube_handle *h, const char *text);
int rig_flush(struct cube_handle *h);
int rig_flush_by(pid_t pid, struct cube_handle *h);
void rig_release(struct cube_handle *h);
/* A read from where a plain reader is (@offset), or the next of a channel. Returns c->out, NUL ended. */
const char *rig_read(struct rig_call *c, struct cube_handle *h, uint64_t offset);
/* The whole of a file by a plain open. */
const char *rig_cat(const char *path);
/* What `echo TEXT > PATH` does: open, write a line, close. The first error. */
int rig_echo(const char *text, const char *path);
const char *rig_ls(const char *path); /* names, a blank behind each */
/* A sandbox that runs. */
void rig_cube(const char *name);
void rig_gone(const char *name);
/* Makes @file in the sandbox, so that what is at `await FILE` there goes on: what is tested depends on no time. */
void rig_go(const char *cube, const char *file);

/* ---- callers ---- */

/* A process that waits to be told; a zombie after rig_person_end. */
pid_t rig_person(void);
void rig_person_end(pid_t pid, int sig); /* 0: it exits by itself */
void rig_person_bury(pid_t pid);

#endif
