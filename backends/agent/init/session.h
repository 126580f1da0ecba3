/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: one shell each that lives on from command to command.
 *
 *   session.c        the table, commands, their ends, what the daemon learns
 *   session_command.c  one command: pipes, texts, variables
 *   session_shell.c  the shell's life: start, end, reports
 *   session_watch.c  finding out that a shell will never report
 *   session_files.c, session_driver.c, session_report.c  how the two talk
 *
 * The shell starts with the first command. When it ends (exit, set -e, exec, a signal) its status is the
 * command's, and the next command finds a fresh one in the same directory with the same exports. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_SESSION_H
#define CUBEFS_BACKENDS_AGENT_INIT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/agent/init/ev.h"
#include "backends/agent/init/group.h"
#include "backends/agent/init/job.h"
#include "backends/agent/init/session_files.h"
#include "backends/agent/init/session_report.h"
#include "backends/agent/wire.h"

enum init_session_phase {
	INIT_SESSION_IDLE, /* no command */
	INIT_SESSION_USER, /* the child that becomes the shell has not said yet who it is; the command waits */
	INIT_SESSION_VARS, /* variables and directory are being set; the command waits */
	INIT_SESSION_RUN,  /* the command runs */
};

/* A command that waits; all ours. */
struct init_next {
	char *text, *env, *cwd; /* cwd NULL: stays where it is */
	size_t text_len, env_len;
	bool vars; /* env and cwd come first */
};

struct init_session {
	struct cube_list link; /* of all */
	struct cube_list idle; /* in the list of those with work to do between commands */
	struct cube_list tell; /* in report.c's list */
	bool telling;
	uint64_t id;
	char *user;
	char *env; /* what its first shell was given, until exports are known */
	size_t env_len;
	char *cwd;     /* after the last command; NULL: not known */
	char *exports; /* NULL: not known */
	size_t exports_len;
	bool exports_told;
	bool closed; /* goes when its command has ended */

	struct init_session_files files;
	struct init_group *group; /* NULL: no shell */
	bool bash;
	int failure;           /* where the child writes why it could not become a shell; -1 */
	struct init_ev status; /* on files.status */
	struct init_report_in *in;

	struct init_job *job; /* NULL: idle */
	enum init_session_phase phase;
	uint64_t seq;  /* of the latest round */
	unsigned last; /* status of the command before */
	char options[32];
	struct init_next next; /* what the command waits with */
	bool input;            /* it reads from i */

	struct init_timer watch;
	unsigned watched;
	bool probed;
};

/* Runs @m as the session's next command; refusals end the job. */
void init_session_run(struct init_job *job, const struct cube_wire_start *m);
struct init_session *init_session_find(uint64_t id);
void init_session_each(void (*fn)(struct init_session *s));
/* Ends its shell and what it runs; @reset: it stays, for a fresh shell. */
void init_session_close(struct init_session *s, bool reset);
/* Of the shell; NULL: there is none. */
struct init_group *init_session_group(const struct init_session *s);
/* The job has ended. */
void init_session_release(struct init_job *job);
/* Remembers where the shell is, before it is ended from outside. */
void init_session_note_cwd(struct init_session *s);
/* What was put off until no command waits for it. Once per round of the loop, after sending. */
void init_session_idle_work(void);

/* session_command.c: gets the command going, in a shell that is there: 0 or -errno. @first: env is the shell's own;
 * @cwd: where to go first; NULL. */
int init_session_command(struct init_session *s, const struct cube_wire_start *m, bool first,
			 const char *cwd);
/* What it waited for has come. */
void init_session_next(struct init_session *s);
void init_session_next_done(struct init_session *s);
/* Its shell cannot be reached: ends the command with that, and the shell. */
void init_session_refuse(struct init_session *s, int err);

/* session_shell.c. 0 or -errno with a sentence that the caller adds to. */
int init_session_shell_start(struct init_session *s, const char *cwd, bool cwd_must);
/* One line for the shell. 0 or -errno. */
int init_session_shell_say(struct init_session *s, const char *line, size_t len);
/* Closes what belongs to the shell, which is dead or as good as; its group goes on alone. */
void init_session_shell_drop(struct init_session *s);
/* Ends a shell that cannot be used any more. */
void init_session_shell_kill(struct init_session *s);
/* Reads what the shell has reported by now. */
void init_session_shell_listen(struct init_session *s);

/* session.c, called by session_shell.c and session_watch.c */
void init_session_reported(struct init_session *s, const struct init_report *r);
void init_session_shell_gone(struct init_session *s, int wait_status);
/* The command is over; what it left is read and passed on. */
void init_session_command_over(struct init_session *s, unsigned status, const char *pwd);

/* session_watch.c */
void init_session_watch(struct init_session *s);
void init_session_unwatch(struct init_session *s);

#endif
