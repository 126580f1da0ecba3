/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: the private half of a job, its input and its output. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_JOB_PRIV_H
#define CUBEFS_CTL_JOB_PRIV_H

#include <stdatomic.h>

#include "backends/base/macros.h"
#include "ctl/cube.h"
#include "ctl/job.h"

#define CUBE_TEXT_MAX    (UINT64_C(4) << 20) /* bytes of a command */
#define CUBE_TEXT_INLINE 1024u               /* a longer text is kept on disk alone */

#define CUBE_NO_SLOT UINT32_MAX

/* The jobs of a sandbox in the order of their numbers (job_index.c). */
struct cube_job_index {
	struct cube_job **jobs;
	size_t n, cap;
};

struct cube_job_own {
	struct cube_job j;
	struct cube_list in_ended; /* own.ended */
	char *text;                /* up to CUBE_TEXT_INLINE bytes; NULL: none, or on disk */
	size_t text_len;
	bool text_on_disk;    /* jobs/N.cmd */
	uint32_t slot;        /* of its spool; CUBE_NO_SLOT: none */
	bool has_order;       /* two pipes: an index beside it */
	bool spool_dropped;   /* its output was given up for spool_limit */
	uint64_t spool_bytes; /* counted in the sandbox */
	uint64_t limit;       /* output_limit at its start */
	uint64_t boot;        /* of the agent it was sent to; 0: not sent */
	bool at_boot;         /* its template's: runs before the sandbox is usable */
	bool reported;        /* the far side spoke of it on this link */
	bool unadopted;       /* and this link is still to be told where its output goes on */
	bool unforgotten;     /* the far side keeps its end record until told */
	bool unsettled;       /* ended, and its end is not in the journal yet */
	bool interrupted;     /* its writer was interrupted: sent again if the link was down */
	int fatal;            /* the last fatal signal that cubefs sent; 0: none */
	/* stdin */
	int in_fd;        /* jobs/in.N while needed; -1 */
	uint64_t in_size; /* bytes that were written: each is in the file until the far side has it */
	uint64_t in_fed;  /* of these, handed to the present link */
	uint64_t in_got;  /* of these, safe at the far side */
	uint64_t in_base; /* of these, given back to the disk */
	bool in_pipe;     /* the running command has an open stdin */
	bool in_eof;      /* end of input after what is on disk */
	bool eof_sent;
	/* transcript */
	uint64_t said_out, said_err;
};

static inline struct cube_job_own *cube_job_own(struct cube_job *j)
{
	return cube_container_of(j, struct cube_job_own, j);
}

struct cube_job *cube_job_new(struct cube_cube *c, const char *name, uint64_t number,
			      bool named); /* in the lists */
/* Cursor over those that have not ended, as cube_job_next: the walk bears that any of them ends or goes. */
struct cube_job *cube_job_next_live(struct cube_cube *c, uint64_t seq);
int cube_job_index_add(struct cube_job_index *x, struct cube_job *j); /* -ENOMEM */
void cube_job_index_take(struct cube_job_index *x, const struct cube_job *j);
void cube_job_index_free(struct cube_job_index *x);
static inline struct cube_job *cube_job_of_ended(struct cube_list *i)
{
	return &cube_list_entry(i, struct cube_job_own, in_ended)->j;
}
/* It has ended (finished_wall is known), and goes when there are too many; nothing for a named one. Not any more. */
void cube_job_ended_add(struct cube_job *j);
void cube_job_ended_take(struct cube_job *j);
int cube_job_check_text(bool argv, const char *text, size_t len, struct cube_err *err);
void cube_job_unlist(struct cube_job *j);
int cube_job_text_file(const struct cube_job *j, char out[32]);
void cube_job_forget(struct cube_job *j); /* out of the lists, files gone */
void cube_jobs_trim(struct cube_cube *c); /* jobs_kept, spool_limit */
/* job_run.c */
void cube_job_start(struct cube_job *j, const char *text,
		    size_t len);          /* if it can start now; else it waits on */
void cube_job_try(struct cube_job *j);    /* the same with the text that was kept */
void cube_job_again(struct cube_job *j);  /* what was sent never arrived */
void cube_jobs_kick(struct cube_cube *c); /* everything that waits for the sandbox */
/* job_end.c. Ending wakes; what is slower and nobody waits for (journal, transcript, events, trimming)
 * follows in settle, after the answers went out where that is possible. */
void cube_job_ended(struct cube_job *j, const struct cube_end_record *end, const struct cube_err *why);
/* Ends one of which there is no record: what the spool holds is its output. */
void cube_job_end_without(struct cube_job *j, enum cube_end how, int sig, const struct cube_err *why);
void cube_job_output(struct cube_job *j, uint64_t total, uint64_t err_total);
void cube_job_settle(struct cube_job *j);
void cube_jobs_settle(struct cube_cube *c); /* all that have ended */
void cube_job_transcribe(struct cube_job *j);
/* job_input.c */
int cube_job_input_file(const struct cube_job *j, char out[32]);
void cube_job_feed(struct cube_job *j); /* pass on what is on disk, as far as the far side takes it */
void cube_job_input_got(struct cube_job *j, uint64_t got); /* the far side has so much in all */
void cube_job_input_again(struct cube_job *j);             /* it has nothing: the start never arrived */
void cube_job_input_start(struct cube_job *j);             /* decides whether it has one */
void cube_job_input_done(struct cube_job *j);              /* it ended: nothing is read any more */
void cube_job_input_adopt(struct cube_job *j);             /* after a load: its writers are gone */
void cube_job_inputs_end(struct cube_cube *c); /* after a load, once it is known who has one open */

/* jobs_dir.c: after a load: files that belong to nothing go, slots that are taken are known. */
void cube_jobs_dir_clean(struct cube_cube *c);

/* output.c */
struct cube_output {
	atomic_uint refs;
	uint32_t slot;
	int out_fd, order_fd;
	uint64_t punched;
	/* pins, under the lock */
	uint64_t *pins; /* lowest offset that each keeps */
	size_t n_pins, cap_pins;
};
/* An empty spool for a job that starts. */
int cube_output_start(struct cube_job *j, struct cube_err *err);
void cube_output_reopen(struct cube_job *j); /* a job that was found running again */
int cube_output_dir(struct cube_cube *c);    /* STATE/cubes/UID/jobs is there */
void cube_output_ahead(struct cube_cube *c); /* make one ready for the next (behind) */
void cube_output_prepare(
	struct cube_cube *c); /* on the creating thread, no lock: the directory, the first spool */
void cube_output_release(struct cube_job *j); /* its files are given up (forgotten, or for spool_limit) */
void cube_output_punch(struct cube_job *j);
void cube_output_account(struct cube_job *j);
/* Totals by the files themselves. */
/* Tells a link where the output of a job that an earlier one started goes on. 0, -EMFILE, -ENOMEM. */
int cube_output_adopt(struct cube_job *j, struct cube_link *agent);
void cube_output_measure(struct cube_job *j, uint64_t *total, uint64_t *err_total);

#endif
