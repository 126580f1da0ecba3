/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: from START to FORGET.
 *
 *   job.c        the table, the end record
 *   job_start.c  fresh processes
 *   job_kill.c   signals, interrupts, time-outs
 *   session.c    what runs in a session's shell
 *   report.c     tells the daemon what has changed */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_JOB_H
#define CUBEFS_BACKENDS_AGENT_INIT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/agent/init/ev.h"
#include "backends/agent/init/group.h"
#include "backends/agent/init/input.h"
#include "backends/agent/init/output.h"
#include "backends/agent/wire.h"

/* What the daemon has to be told about a job. In this order. */
#define INIT_TELL_STARTED 1u
#define INIT_TELL_CREDIT  2u
#define INIT_TELL_OUTPUT  4u
#define INIT_TELL_ENDED   8u
#define INIT_TELL_GONE    16u

struct init_session;

/* A step on the way to the end of a job: a signal, and after how long the next one. */
struct init_step {
	int sig; /* 0: no more */
	unsigned ms;
};

struct init_dying {
	const struct init_step *step; /* NULL: nobody wants its end */
	uint8_t how;                  /* cube_wire_how that the end will have */
	bool whole;                   /* the end waits for everything that it started */
	bool told;                    /* session: the shell was asked to end */
	unsigned polls;
	uint64_t next;       /* when the next step is due; 0: none */
	uint64_t give_up;    /* KILL did not help until then */
	uint64_t shell_kill; /* session: when the shell gets KILL */
};

struct init_job {
	struct cube_list link; /* of all */
	struct cube_list tell; /* in report.c's list */
	unsigned telling;      /* INIT_TELL_ */
	uint64_t id;
	uint64_t session_id;
	struct init_session *session; /* whose shell runs it now; NULL: a fresh process, or ended */
	struct init_group *group;     /* a fresh process's own */
	pid_t pid;
	bool gone; /* the command is over, the job not yet ended */
	bool ended;
	bool tail;        /* forgotten: only its output goes on */
	int tty;          /* the terminal's master; -1: none */
	int failure;      /* where the child writes why it could not start; -1 */
	uint64_t signals; /* bit n-1: signal n was sent to it by us */
	struct init_output output;
	struct init_input input;
	uint64_t sent;              /* own spool: of the output, as DATA ... */
	uint64_t acked;             /* ... and acknowledged ... */
	uint64_t freed;             /* ... and given back to the disk */
	uint64_t run;               /* own spool: the index record that `sent` lies in */
	struct cube_wire_ended end; /* once gone; end.text is `why` */
	char *why;                  /* allocated; NULL */
	struct init_timer timeout, poll;
	struct init_dying dying;
};

/* A START of the daemon's. The descriptors are taken over (-1: none was passed). @m points into @message,
 * which is taken over as well (free(3)). A job that cannot be started ends with the reason.
 * 0, or -EPROTO where that number is in use. */
int init_job_start(uint64_t id, const struct cube_wire_start *m, void *message, int out_fd, int order_fd);
struct init_job *init_job_find(uint64_t id);
/* Calls @fn for each; it may free that one. */
void init_job_each(void (*fn)(struct init_job *job));
/* The daemon has its end on disk. */
void init_job_forget(struct init_job *job);
/* Moves all time-outs. */
void init_job_paused(uint64_t ns);

/* job_start.c: a fresh process; a failure goes to init_job_failed. */
void init_job_spawn(struct init_job *job, const struct cube_wire_start *m);
/* A pipe whose reading end does not block; 0 or -errno. */
int init_job_pipe(int fds[2]);

/* It runs as @pid. */
void init_job_running(struct init_job *job, pid_t pid);
/* It could not be started: an exit code, an errno and a sentence. Ends it. */
void init_job_failed(struct init_job *job, int code, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Takes the record that the child left in @fd, if any, as the end; closes it. */
bool init_job_take_failure(struct init_job *job, int fd);
/* The command is over, by a wait status (-1: nobody saw it) or with the code that the shell reported. */
void init_job_over(struct init_job *job, int wait_status);
void init_job_over_code(struct init_job *job, int code);
/* Ends the job, if it is over and nothing has to be waited for. */
void init_job_check(struct init_job *job);
/* Ends it as it is: what it left running cannot be ended. */
void init_job_finish(struct init_job *job);
/* After GONE was told: frees it. */
void init_job_drop(struct init_job *job);
/* Its processes. NULL: none. */
struct init_group *init_job_group(const struct init_job *job);

/* job_kill.c */
void init_job_kill(struct init_job *job, int sig);
void init_job_interrupt(struct init_job *job);
/* From now; 0: none. */
void init_job_timeout(struct init_job *job, uint32_t seconds);
void init_job_stop_timers(struct init_job *job);
/* True for a signal that is meant to end a job. */
bool init_sig_ends(int sig);

#endif
