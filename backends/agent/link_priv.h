/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the link share. */
#ifndef CUBEFS_BACKENDS_AGENT_LINK_PRIV_H
#define CUBEFS_BACKENDS_AGENT_LINK_PRIV_H

#include <pthread.h>

#include "backends/agent/link.h"
#include "backends/agent/wire.h"
#include "backends/base/list.h"
#include "backends/base/map.h"

#define CUBE_AGENT_JOBS_MAX 65536 /* that a hostile agent can make us remember */

struct agent_job {
	uint64_t id;
	uint64_t session;               /* whose command it is, while it runs; 0 */
	uint64_t sent, received, taken; /* of its input: by us, by the agent, by the command */
	bool ended;
	bool taken_up;             /* by the caller, of an earlier link; nothing was told of it yet */
	uint64_t oom_count;        /* at its start; 0: started by another link */
	uint64_t total, err_total; /* of its output, as was last told */
	int out_fd, order_fd; /* copies of ours; -1: none (not started here, or it has ended and the agent
				 writes) */
	struct cube_wire_ended
		*held; /* its end, which came before the output that belongs to it; ours; NULL */
	int last;      /* stream of the index's latest record, for cube_spool_note; -1: not known */
};

/* Bytes that wait to be sent. */
struct agent_chunk {
	struct cube_list link;
	int fds[2]; /* go with the first byte; ours; -1: none */
	size_t off, len;
	unsigned char data[];
};

struct agent_link {
	struct cube_link base;
	struct cube_loop *loop;
	const struct cube_link_handler *handler;
	void *ctx;
	int fd;
	bool pass_fds;
	bool still_clock; /* a pause is no time inside */
	struct cube_post post;

	/* The loop's thread only. */
	struct cube_watch *watch;
	struct cube_timer *retry;   /* output that found the disk full is asked for again */
	struct cube_imap *stalled;  /* jobs with such output */
	struct cube_wire_join join; /* SESSION */
	bool greeted;
	struct cube_wire_feed *feed;

	pthread_mutex_t lock; /* for all below; nothing is called with it held */
	bool closed;          /* by the caller: no handler function from now on */
	bool dead;            /* `down` was or will be called; nothing is sent */
	bool posted;          /* post is on its way to the loop */
	uint64_t caps;
	struct cube_imap *jobs;     /* struct agent_job */
	struct cube_imap *sessions; /* the job that a session runs */
	struct cube_list queue;     /* struct agent_chunk */
	struct cube_agent_oom oom;  /* functions NULL: nobody knows */
};

/* link_send.c. All with the lock held.
 * Sends or queues; takes nothing over; descriptors (-1: none) go with the first byte. 0, -EHOSTDOWN, -ENOMEM,
 * -EMFILE: then nothing of it was sent. */
int cube_agent_send(struct agent_link *l, const void *data, size_t len, const int fds[2]);
/* From the loop: what is queued. */
void cube_agent_send_queued(struct agent_link *l);
void cube_agent_send_drop(struct agent_link *l);
int cube_agent_send_number(struct agent_link *l, enum cube_wire_type type, uint64_t id, uint64_t v);

/* link_job.c. With the lock held. */
struct agent_job *cube_agent_job_new(struct agent_link *l, uint64_t id, uint64_t session);
void cube_agent_job_close_fds(struct agent_job *job);
void cube_agent_job_free(struct agent_link *l, struct agent_job *job);
void cube_agent_jobs_done(struct agent_link *l);
/* Copies of the descriptors of its spool. 0 or -errno. */
int cube_agent_job_spool(struct agent_job *job, int out_fd, int order_fd);

/* link_recv.c. On the loop's thread: one frame. 0, or -errno with a sentence. */
int cube_agent_receive(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		       struct cube_err *err);
/* link_data.c: DATA, where this end writes the spool. Takes the lock itself. */
int cube_agent_receive_data(struct agent_link *l, const struct cube_wire_head *head, const void *body,
			    struct cube_err *err);
void cube_agent_data_retry(void *ctx);
/* On the loop's thread: tells the end that was held back, once all of its output is here. */
void cube_agent_end_held(struct agent_link *l, uint64_t id);

/* On the loop's thread: tells how far the output of jobs is that were taken up, and the ends that waited for that. */
void cube_agent_taken_up(struct agent_link *l);

/* May a handler function be called? */
bool cube_agent_listening(struct agent_link *l);

#endif
