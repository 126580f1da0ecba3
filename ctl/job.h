/* SPDX-License-Identifier: Apache-2.0 */
/* A job: one run of a command, with its output on disk. Those of `exec` too. Under the domain lock. */
#ifndef CUBEFS_CTL_JOB_H
#define CUBEFS_CTL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/spool.h"
#include "backends/link.h"
#include "ctl/cube.h"

enum cube_job_state {
	CUBE_JOB_NEW,     /* has no command yet */
	CUBE_JOB_WAITING, /* for its session, or for the sandbox to run */
	CUBE_JOB_RUNNING,
	CUBE_JOB_ENDED,
};

/* Its output: reference counted, so that a reader may read without the lock while the job is forgotten. */
struct cube_output;

enum cube_job_stdin { CUBE_JOB_STDIN_PLAIN, CUBE_JOB_STDIN_PIPE, CUBE_JOB_STDIN_STREAM };

struct cube_job {
	unsigned refs;
	struct cube_cube *cube;
	struct cube_list link;       /* cube.jobs */
	struct cube_list in_session; /* session.queue while waiting or running there */
	uint64_t seq;
	uint64_t number; /* what the link knows it by; unique in the cube */
	char *name;      /* "7" or what mkdir said */
	bool named, forgotten;
	struct cube_session *session; /* NULL: a fresh process */
	bool of_exec;                 /* made by a session's exec: shown by exec and exit there */
	enum cube_job_state state;
	bool argv, merge, tty;
	uint16_t rows, cols;
	enum cube_job_stdin in_mode;
	char *cwd, *user;    /* NULL: defaults */
	struct cube_buf env; /* own, NUL-separated; used if has_env */
	bool has_env;
	uint32_t timeout_s; /* 0: the cube's command_timeout */
	int pid;
	uint64_t created_wall, started_wall, finished_wall;
	struct cube_end_record end;
	struct cube_err why;        /* why it could not be started */
	uint64_t total, err_total;  /* output so far */
	struct cube_waitq changed;  /* output grew, state changed, input space */
	struct cube_output *output; /* open while it runs; readers ask cube_job_view */
	unsigned stdin_writers;     /* opens of `stdin` for writing */
	void *tree_data;
};

struct cube_job *cube_job_ref(struct cube_job *j);
void cube_job_unref(struct cube_job *j);

/* A new job, with a reference for the caller; @name NULL: the next free number. -EEXIST; -EINVAL for a number, "last", "clone" or a bad name. */
int cube_job_create(struct cube_cube *c, const char *name, struct cube_job **ret, struct cube_err *err);
struct cube_job *cube_job_find(struct cube_cube *c, const char *name);
struct cube_job *cube_job_by_number(struct cube_cube *c, uint64_t number); /* NULL: none */
struct cube_job *cube_job_next(struct cube_cube *c, uint64_t seq);         /* cursor, as cube_domain_next */
/* rmdir: ends it with everything it started, and forgets it with its output. */
int cube_job_remove(struct cube_job *j, struct cube_err *err);

/* What was set before the start (cwd, user, env, mode of stdin, ...) is on disk: to be called after a change. */
int cube_job_keep(struct cube_job *j, struct cube_err *err);

/* The command: accepted means that it will run (state waiting or running, intention on disk). -EBUSY it had one;
 * -EINVAL a NUL in text; -EFBIG above 4 MiB; -EHOSTDOWN. @text is copied. */
int cube_job_submit(struct cube_job *j, bool argv, const char *text, size_t len, struct cube_err *err);
/* What was run, added to @out. */
int cube_job_text(struct cube_job *j, bool argv, struct cube_buf *out);

/* The waiting writer was interrupted: INT, TERM, KILL to what it runs; a job that waits never starts
 * (ended killed). */
void cube_job_interrupt(struct cube_job *j);
/* -EBUSY before it has a command, 0 after its end (nothing to do). One that waits ends `killed` without a start. */
int cube_job_kill(struct cube_job *j, int sig, struct cube_err *err);

/* stdin. What is taken is on disk until the far side has it, so that a daemon that is killed neither loses nor
 * repeats a byte. Before the start any amount is; afterwards a writer waits (returns 0: wait on j->changed) while
 * 1 MiB has not arrived there. -EPIPE after its end or eof; -ENOSPC. */
ssize_t cube_job_input(struct cube_job *j, const void *data, size_t len, struct cube_err *err);
/* Bytes of stdin that were taken so far; 0 after the end. */
uint64_t cube_job_input_total(struct cube_job *j);
void cube_job_input_open(struct cube_job *j);
void cube_job_input_close(struct cube_job *j); /* the last close may be the end of file: by in_mode */
int cube_job_eof(struct cube_job *j, struct cube_err *err);

/* Its output as it is now: a reference for the caller, usable without the lock. NULL: none yet. *v is filled
 * with descriptors that live as long as the reference. */
struct cube_output *cube_job_view(struct cube_job *j, struct cube_spool_view *v);
void cube_output_unref(struct cube_output *o); /* any thread, with or without the lock; NULL is harmless */
/* A plain reader keeps the halves that it saw at its open: nothing at or above the tail of @v is given back to the
 * disk while it is pinned (bounded: see output.c). Under the lock. */
void cube_output_pin(struct cube_output *o, const struct cube_spool_view *v);
void cube_output_unpin(struct cube_output *o, const struct cube_spool_view *v);

#endif
