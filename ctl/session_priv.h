/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: the private half of a session. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_SESSION_PRIV_H
#define CUBEFS_CTL_SESSION_PRIV_H

#include "backends/base/macros.h"
#include "ctl/cube_priv.h"
#include "ctl/job.h"
#include "ctl/session.h"

struct cube_session_own {
	struct cube_session s;
	struct cube_env_text *env_base; /* the sandbox's environment as this session has it */
	char *new_cwd;                  /* written; goes with the next command */
	uint64_t boot;                  /* of the agent that has it */
	bool begun;                     /* had a command: user is fixed */
};

static inline struct cube_session_own *cube_session_own(struct cube_session *s)
{
	return cube_container_of(s, struct cube_session_own, s);
}

struct cube_session *cube_session_new(struct cube_cube *c, const char *name,
				      uint64_t number); /* in the list */
struct cube_session *cube_session_by_number(struct cube_cube *c, uint64_t number);
void cube_session_delist(struct cube_session *s);
void cube_session_kick(struct cube_session *s); /* start the head if it can be */
void cube_session_news(struct cube_session *s, const struct cube_link_session *n);
void cube_session_show(struct cube_session *s, struct cube_job *j); /* the latest */
void cube_session_dequeue(struct cube_job *j);                      /* it ended: the next one's turn */
/* The environment that a start of @s brings along. */
int cube_session_start_env(struct cube_session *s, struct cube_buf *out);
void cube_session_started(struct cube_session *s);
void cube_session_load_exports(struct cube_session *s);
int cube_user_check(const char *user, struct cube_err *err);
void cube_session_anew(struct cube_session *s); /* the far side has nothing of it */

#endif
