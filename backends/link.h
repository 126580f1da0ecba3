/* SPDX-License-Identifier: Apache-2.0 */
/* The process interface of one running sandbox: start, output, input, signals, end.
 *
 * Whoever runs commands (ctl/) talks to a link and never knows what is behind it: cube-init over a
 * byte stream (backends/agent/link.h: local sandboxes, containers, machines) or a service with
 * an exec API of its own, whose backend implements this table itself.
 *
 * Ordering and threads. Every method returns at once, never blocks, may be called on any thread and
 * with the caller's lock held. Handler functions are called on the loop's thread with no lock of
 * the link held, never from inside a method. After cube_link_close no handler function is called.
 *
 * Jobs are named by 64 bit numbers that the caller chooses; a number is never used twice in the life
 * of a sandbox. Sessions likewise (0 is "no session": a fresh process).
 *
 * Recovery. A link may go down (the agent died, the connection broke) and a new one may be made to
 * the same sandbox, by the same daemon or a later one. On `up` the far side reports every job that
 * it still knows: `started`, `output` and, where it has ended, `ended`; then `synced`. A job that the
 * caller believes running and that was not reported by then is lost. An end record is kept at the far
 * side until cube_link_forget: it is neither lost nor, seen by job number, counted twice.
 *
 * Output. Locally the far side writes to the descriptors it was handed; else the link itself writes
 * what arrives to those descriptors. Either way `output` says how far the spool file is valid. The
 * layout of the spool is in backends/base/spool.h.
 *
 * A pause may take a link down, where the way to the sandbox ends with it; what was not said to have arrived by then is
 * said again over the next one. */
#ifndef CUBEFS_BACKENDS_LINK_H
#define CUBEFS_BACKENDS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/err.h"

enum cube_end {
	CUBE_END_EXIT,    /* it exited: code */
	CUBE_END_SIGNAL,  /* a signal that cubefs did not send: signal, code 128+signal */
	CUBE_END_TIMEOUT, /* its time-out: code 124 */
	CUBE_END_OOM,     /* the memory limit: code 137 */
	CUBE_END_KILLED,  /* cubefs ended it (kill, interrupt, stop, restart): code 128+signal */
	CUBE_END_LOST,    /* nobody knows: no code */
};

/* "exit", "signal", ... as in `status` of a job. */
const char *cube_end_name(enum cube_end how);

struct cube_end_record {
	enum cube_end how;
	int code;           /* 0 to 255; -1 when lost */
	int signal;         /* 0: none */
	uint64_t total;     /* bytes of output in all, dropped ones included */
	uint64_t err_total; /* of these on stderr (0 when merged) */
	uint64_t wall_ns;   /* when it ended, by the far side's clock */
	uint64_t lost;      /* bytes that are in no total: the disk of the spool was full when they came */
};

enum cube_stdin {
	CUBE_STDIN_EMPTY, /* at its end from the start */
	CUBE_STDIN_PIPE,  /* fed by cube_link_input until cube_link_eof */
};

struct cube_link_start {
	uint64_t job;
	uint64_t session; /* 0: a fresh process; else it becomes the session's next command (the session is
	                       opened if the far side does not know it; busy: refused, -EBUSY) */
	bool argv;        /* text is NUL-separated words, run without a shell; else text for the shell */
	const char *text;
	size_t text_len;
	const char *env; /* NUL-separated NAME=VALUE. Fresh process and new session: its whole environment
	                       (the far side adds nothing but PWD). Live session: what to change first; NAME alone unsets */
	size_t env_len;
	const char *cwd;  /* absolute. NULL: fresh: /workspace; session: where it is */
	const char *user; /* "", NAME, UID or UID:GID; session: only when it is opened */
	enum cube_stdin in;
	bool tty; /* a terminal of rows x cols is 0, 1 and 2 (implies merge) */
	uint16_t rows, cols;
	bool merge;         /* one pipe for 1 and 2; a session's command always has one */
	uint32_t timeout_s; /* 0: none. Time for which the sandbox was paused does not count */
	int out_fd;         /* the spool file and its index (-1 when merged), empty; borrowed for the call */
	int order_fd;
	uint64_t limit; /* how much of the spool is kept (spool.h) */
};

struct cube_link_session {
	uint64_t session;
	const char *cwd;     /* after its last command */
	const char *exports; /* what `export -p` printed, quoted by the shell; NULL: unchanged */
	size_t exports_len;
	bool fresh; /* the shell ended and a new one will start with the next command */
};

/* What becomes of a sandbox when its life time ends and nobody is connected to it. */
enum cube_link_end {
	CUBE_LINK_END_NONE,
	CUBE_LINK_END_STOP,  /* all that runs is ended, and the sandbox with it */
	CUBE_LINK_END_STILL, /* all that runs stands still until somebody connects */
};

/* Called on the loop's thread. Pointers are valid for the call only. All are required. */
struct cube_link_handler {
	/* The far side answered. @boot changes whenever it lost its memory (a restart of the sandbox). */
	void (*up)(void *ctx, uint64_t boot);
	void (*synced)(void *ctx);
	/* @pid 0: it is not running yet, or what it left behind may still print. */
	void (*started)(void *ctx, uint64_t job, int pid);
	/* The spool is valid up to @total bytes, of which @err_total were stderr. Never goes backwards. */
	void (*output)(void *ctx, uint64_t job, uint64_t total, uint64_t err_total);
	/* The far side has @got bytes of the job's input in all: they are safe there, whatever becomes of the
	 * link. Said of what it reports, before `synced` (the caller goes on from there), and whenever it is more;
	 * cube_link_input may take something again. */
	void (*input)(void *ctx, uint64_t job, uint64_t got);
	/* Comes before the `ended` of the command that changed it. */
	void (*session)(void *ctx, const struct cube_link_session *s);
	/* Only `output` may follow for this job, of what a child in the background prints. @err is set where it could not be started at all (code 126, 127 or 2). */
	void (*ended)(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err);
	/* The answer to cube_link_look: so many processes of ended commands are there. Told again when the last of
	 * them is gone. @still: none, and the shells of sessions hold no file that they, or a command of theirs, could
	 * write without opening it (false also where that is not known). */
	void (*left)(void *ctx, uint64_t n, bool still);
	/* Broken; the link is dead and only cube_link_close is left to do. */
	void (*down)(void *ctx, const struct cube_err *err);
};

struct cube_link;

struct cube_link_ops {
	int (*start)(struct cube_link *l, const struct cube_link_start *s, struct cube_err *err);
	ptrdiff_t (*input)(struct cube_link *l, uint64_t job, const void *data, size_t len);
	void (*eof)(struct cube_link *l, uint64_t job);
	void (*kill)(struct cube_link *l, uint64_t job, int sig);
	void (*interrupt)(struct cube_link *l, uint64_t job);
	void (*winsize)(struct cube_link *l, uint64_t job, uint16_t rows, uint16_t cols);
	void (*timeout)(struct cube_link *l, uint64_t job, uint32_t seconds);
	void (*forget)(struct cube_link *l, uint64_t job);
	void (*session_close)(struct cube_link *l, uint64_t session, bool reset);
	void (*kill_all)(struct cube_link *l, int sig);
	void (*freeze)(struct cube_link *l, bool on);
	void (*paused)(struct cube_link *l, uint64_t ms);
	int (*look)(struct cube_link *l);                                            /* optional */
	void (*deadline)(struct cube_link *l, uint64_t ms, enum cube_link_end what); /* optional */
	int (*adopt)(struct cube_link *l, uint64_t job, int out_fd, int order_fd, uint64_t total,
		     uint64_t err_total); /* optional */
	void (*close)(struct cube_link *l);
};

/* Embedded first in each implementation. */
struct cube_link {
	const struct cube_link_ops *ops;
};

/* Start a job. 0: accepted, and `ended` will come whatever happens (or `down`); text, env and the
 * rest are copied. -EBUSY the session has a command; -EMSGSIZE above 4 MiB; -EHOSTDOWN the link is
 * down; -ENOMEM. */
int cube_link_start(struct cube_link *l, const struct cube_link_start *s, struct cube_err *err);
/* Bytes for the job's stdin, behind those before: how many were taken, 0 when its window is full (`input`
 * follows) or the job is not there any more. What was taken is on its way: the caller keeps it until `input`
 * says that it has arrived. */
ptrdiff_t cube_link_input(struct cube_link *l, uint64_t job, const void *data, size_t len);
/* End of its stdin, after all that was taken before. */
void cube_link_eof(struct cube_link *l, uint64_t job);
/* A signal to everything the job started, session leaders, double forks and stopped ones too; of a
 * session's command everything but the shell and what earlier commands left running. A fatal one makes
 * the end `killed`. */
void cube_link_kill(struct cube_link *l, uint64_t job, int sig);
/* INT, two seconds later TERM, two more later KILL, to the same processes; ends `killed`. */
void cube_link_interrupt(struct cube_link *l, uint64_t job);
void cube_link_winsize(struct cube_link *l, uint64_t job, uint16_t rows, uint16_t cols);
/* Seconds from now; 0: none. */
void cube_link_timeout(struct cube_link *l, uint64_t job, uint32_t seconds);
/* The caller has the end record on its disk. */
void cube_link_forget(struct cube_link *l, uint64_t job);
/* End a session with all that it runs (@reset: the next command finds a fresh shell in the same
 * directory, with the same exports). */
void cube_link_session_close(struct cube_link *l, uint64_t session, bool reset);
/* Every process but the first and the agent's own. */
void cube_link_kill_all(struct cube_link *l, int sig);
/* Stop and continue every process from inside, where the backend has no freezer. */
void cube_link_freeze(struct cube_link *l, bool on);
/* The sandbox was paused for so long: move the time-outs. */
void cube_link_paused(struct cube_link *l, uint64_t ms);
/* Ask what ended commands have left running: `left` is the answer. -EOPNOTSUPP: the far side cannot know. */
int cube_link_look(struct cube_link *l);
/* Should nobody be connected in @ms from now, or later, the far side does this by itself. Each call replaces the one
 * before. Where the far side has no such clock, nothing. */
void cube_link_deadline(struct cube_link *l, uint64_t ms, enum cube_link_end what);
/* Of a job that an earlier link started, in `started`: its spool, which is valid up to @total bytes, @err_total of them
 * stderr. Where the link writes the spools, its output goes on behind these, and neither more of it nor its end is told
 * before this call; where the far side does, nothing. The descriptors are borrowed for the call. -EMFILE, -ENOMEM. */
int cube_link_adopt(struct cube_link *l, uint64_t job, int out_fd, int order_fd, uint64_t total,
		    uint64_t err_total);
/* Ends the connection, not the sandbox, and frees the link once nothing uses it. NULL is harmless.
 * No handler function is running or will be called when it returns on the loop's thread; from another
 * thread one may still be running, so callers guard with their own state. */
void cube_link_close(struct cube_link *l);

#endif
