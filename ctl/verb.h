/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs: what can be written to a `ctl`. Tables, dispatch, answers. Under the domain lock.
 *
 * A line is split into words (ctl/words.h), looked up in the table of its scope, its arguments counted, the
 * capability checked; then it runs. It ends at once or later; either way done is called exactly once, under
 * the lock (maybe before cube_verb_start returns). A refused line has had no effect. */
#ifndef CUBEFS_CTL_VERB_H
#define CUBEFS_CTL_VERB_H

#include "ctl/caller.h"
#include "ctl/session.h"

enum cube_scope {
	CUBE_SCOPE_ROOT,
	CUBE_SCOPE_BACKEND,
	CUBE_SCOPE_TEMPLATE,
	CUBE_SCOPE_CUBE,
	CUBE_SCOPE_SESSION,
	CUBE_SCOPE_JOB,
	CUBE_SCOPE_POOL,
	CUBE_SCOPE_PORT,
	CUBE_SCOPE_CHECKPOINT
};
#define CUBE_SCOPE_COUNT 9

struct cube_verb_call;

struct cube_verb {
	const char *name;
	const char *args;    /* usage behind the name: "[SECONDS]" */
	const char *summary; /* one line, lower case */
	unsigned min, max;   /* words behind the name */
	uint32_t needs;      /* capabilities of the backend */
	/* Which phases of a sandbox it makes sense in (bit 1u << enum cube_phase); 0: all. For the usage shown by ctl
	 * and a refusal that names the state. */
	uint32_t phases;
	/* Starts it: 0 finished well, 1 done will be called later, negative: refused (err filled). */
	int (*run)(struct cube_verb_call *call, struct cube_err *err);
};

/* The verbs of a scope, NULL ended: for dispatch, for the usage in `ctl`, for the test against the manual. */
const struct cube_verb *const *cube_verbs(enum cube_scope scope);

struct cube_verb_call {
	/* the caller's */
	struct cube_domain *domain;
	enum cube_scope scope;
	void *object; /* by scope: NULL, service, template entry, cube, session, job, pool, port, checkpoint; referenced by the caller until done */
	struct cube_caller by;
	struct cube_hold *hold; /* of the channel that it was written to; NULL: to none, or left to itself */
	void (*done)(struct cube_verb_call *call,
		     int code); /* code 0 or negative; err and answer are filled */
	/* The line may come again, from a worker that follows one that was killed before it had said how it ended: then
	 * @noted is the last number that was given to @note, 0: none was. NULL: it never comes again. */
	void (*note)(struct cube_verb_call *call, uint64_t number);
	uint64_t noted;
	/* filled */
	struct cube_err err;
	char answer[1000]; /* "key=value ..." behind ok; may be empty */
	/* the verb's own while it runs */
	char **words; /* words[0] is the verb; NULL ended */
	unsigned n_words;
	const struct cube_verb *verb;
	struct cube_waiter waiter;
	void *state;
	void (*cancel)(struct cube_verb_call *call); /* NULL: cannot be cancelled (it is left to itself) */
	bool finished;
};

/* Runs one line (without its newline; NUL in it: -EINVAL). The outcome comes through call->done. An empty line or a
 * comment is done with 0. The failure is noted in the object's error log by whoever called (fs/tree). */
void cube_verb_start(struct cube_verb_call *call, const char *line, size_t len);
/* Who wrote it is interrupted: done comes with -EINTR unless it had finished; what cannot be stopped goes on. */
void cube_verb_cancel(struct cube_verb_call *call);
/* For verb implementations: the end. */
void cube_verb_finish(struct cube_verb_call *call, int code);
/* Right before what is done at one stroke and leaves no trace. -EIO: a worker that was killed was about to do it, and
 * whether it came to it nobody can tell. */
int cube_verb_once(struct cube_verb_call *call, struct cube_err *err);

/* Usage lines ("stop [SECONDS]    summary") of the verbs that work for @object now, added to @out. */
int cube_verb_usage(enum cube_scope scope, void *object, struct cube_buf *out);

#endif
