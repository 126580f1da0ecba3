/* SPDX-License-Identifier: Apache-2.0 */
/* A running cube-init-host with a link to it, for the tests: a loop on a thread of its own, and what the
 * handler was told, by job. Every wait has a deadline and fails the test. */
#ifndef CUBEFS_TESTS_UNIT_AGENT_RIG_H
#define CUBEFS_TESTS_UNIT_AGENT_RIG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/loop.h"
#include "backends/link.h"

#define RIG_JOBS     1024
#define RIG_SESSIONS 16
#define RIG_LIMIT    (UINT64_C(256) << 20)

struct rig_job {
	uint64_t id;
	int pid; /* 0: `started` has not come */
	unsigned starts, outputs, inputs, ends;
	uint64_t input; /* of which so much has arrived */
	uint64_t total, err_total;
	bool ended;
	struct cube_end_record end;
	struct cube_err err; /* code 0: none came */
	int out_fd, order_fd;
};

struct rig_session {
	uint64_t id;
	unsigned reports;
	char cwd[4096];
	char *exports;
	bool fresh;
};

struct rig {
	const char *shell; /* for --shell; NULL: the agent's choice */
	bool stream;       /* a socket pair that passes nothing, instead of a listener */
	bool terminal;     /* the stream is a terminal's */
	bool groups;       /* with a cgroup */
	bool first;        /* the agent is process 1 of a pid namespace */
	char dir[64];      /* scratch */
	char cgroup[128];
	int listener; /* the agent's, as a path of ours */
	int pair;     /* stream: our end */
	pid_t agent;
	struct cube_loop *loop;
	pthread_t thread;
	struct cube_link *link;
	uint64_t next_job;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t boot;
	unsigned ups, syncs, downs, lefts;
	uint64_t left; /* as was last told ... */
	bool still;    /* ... with it */
	struct cube_err down;
	struct rig_job jobs[RIG_JOBS];
	unsigned n_jobs;
	struct rig_session sessions[RIG_SESSIONS];
	unsigned n_sessions;
	const char *order; /* what was called last, for tests of order */
};

/* What a test wants to run; zero is the default. */
struct rig_run {
	const char *text; /* text_len 0: strlen */
	size_t text_len;
	bool argv;
	uint64_t session;
	const char *env; /* NUL-separated, by env_len; NULL: PATH alone for what is new, nothing for a live
			    session */
	size_t env_len;
	const char *cwd; /* NULL: the scratch directory for a fresh process, none for a session */
	const char *user;
	bool input, tty, merge, separate;
	uint16_t rows, cols;
	uint32_t timeout_s;
	uint64_t limit; /* 0: RIG_LIMIT */
	int out_fd;     /* 0: a new file */
};

/* Starts an agent and connects to it. @shell and the rest as in the struct. */
struct rig *rig_new(const char *shell, bool stream, bool groups);
/* Over the raw bytes of a terminal, which one daemon after the other may use. */
struct rig *rig_new_terminal(void);
/* As process 1, with a /proc of its own; needs root. */
struct rig *rig_new_first(const char *shell, bool groups);
void rig_free(struct rig *r);
/* The same for every shell that is there, with and without cgroups: calls @fn for each. */
void rig_each(void (*fn)(struct rig *r));
/* Each shell, the plain way. */
void rig_each_shell(void (*fn)(struct rig *r));

/* Drops the connection as a daemon that is killed does; makes a new one and waits until it is synced. */
void rig_disconnect(struct rig *r);
void rig_connect(struct rig *r);

/* Starts it; gives its number. */
uint64_t rig_start(struct rig *r, const struct rig_run *run);
/* The same, and waits for its end. */
uint64_t rig_do(struct rig *r, const struct rig_run *run);
/* In session 1, which begins in the scratch directory. */
uint64_t rig_say(struct rig *r, const char *text);
int rig_refused(struct rig *r, const struct rig_run *run);

struct rig_job *rig_job(struct rig *r, uint64_t id);
struct rig_session *rig_session(struct rig *r, uint64_t id);
void rig_wait_started(struct rig *r, uint64_t id);
void rig_wait_end(struct rig *r, uint64_t id);
void rig_wait_total(struct rig *r, uint64_t id, uint64_t total);
/* Until @what holds (called with the lock). */
void rig_wait(struct rig *r, bool (*what)(struct rig *r, void *ctx), void *ctx);
/* The output so far, by the job's spool: allocated (free), NUL ended. */
char *rig_output(struct rig *r, uint64_t id, size_t *ret_len);
/* It is exactly this. */
void rig_expect(struct rig *r, uint64_t id, const char *output, enum cube_end how, int code);
/* It has this in it. */
bool rig_has(struct rig *r, uint64_t id, const char *part);
/* Waits until the process is gone; fails when it is not. */
void rig_wait_dead(int pid);
/* The number that is in a file of the scratch directory, once it is there. */
int rig_wait_number(struct rig *r, const char *name);

#define RIG_LITERAL(s) (s), sizeof(s) - 1

#endif
