/* SPDX-License-Identifier: Apache-2.0 */
/* Exposed ports: what listens in a sandbox, reachable on this machine. Under the domain lock.
 *
 * A port is exposed by its name in `ports/`, whether or not something listens: a door (door.h) accepts on this
 * side, and each connection is let through (gate.h) and joined with one inside (conn.c). What a port is is kept in
 * cube.json: over pause, restart and the daemon's end; a fork has none. */
#ifndef CUBEFS_CTL_PORTS_PORT_H
#define CUBEFS_CTL_PORTS_PORT_H

#include "backends/backend.h"
#include "backends/base/json.h"
#include "backends/base/list.h"
#include "backends/base/name.h"
#include "ctl/alarm.h"
#include "ctl/ports/token.h"
#include "ctl/wait.h"

#define CUBE_PORT_CONNS   1000u /* connections of one port; more wait in the kernel */
#define CUBE_PORT_SECONDS 3600u /* for which a url of `sign` is good unless said */
#define CUBE_PORT_HOST    64    /* an address of this side */

struct cube_cube;
struct cube_door;

/* Of a sandbox. */
struct cube_ports {
	struct cube_list list;      /* struct cube_port, by seq */
	struct cube_listener *open; /* what listened inside when that was last asked; NULL: nothing */
	size_t n_open;
	struct cube_asked asked;
};

struct cube_port {
	unsigned refs;
	struct cube_cube *cube;
	struct cube_list link; /* cube.ports.list */
	uint64_t seq;
	char *name; /* "8080", "unix:%2Frun%2Fx", "abstract:x" */
	struct cube_target target;
	bool removed;
	uint64_t created_wall;
	/* kept */
	char word[CUBE_NAME_MAX + 1]; /* `name WORD`; may be empty */
	bool open;                    /* public */
	char host[CUBE_PORT_HOST];    /* this side's address and port, also while it is not listening */
	uint16_t at;
	bool fixed; /* `listen` said so: no other one will do */
	bool has_token;
	uint64_t serial, expires; /* seconds since 1970; 0: never */
	unsigned char key[CUBE_TOKEN_KEY];
	/* now */
	struct cube_door *door; /* NULL: it could not listen */
	struct cube_list conns; /* conn.c */
	unsigned n_conns;
	struct cube_waitq changed; /* a knock was answered or not; it went */
	bool knocking, answers;
	uint64_t knocks;
	struct cube_alarm again; /* for who knocks and waits */
	void *tree_data;
};

void cube_ports_init(struct cube_cube *c);
void cube_ports_free(struct cube_cube *c); /* the sandbox goes from memory */
/* The sandbox is destroyed, or (@gone false) the daemon ends: nothing is accepted or connected any more. */
void cube_ports_close(struct cube_cube *c, bool gone);

/* A name of the directory; -EINVAL with the reason, which has the right one where there is one. */
int cube_port_parse(const char *name, struct cube_target *ret, struct cube_err *err);
/* The other way: into @out, to be added to a line. */
int cube_port_spell(const struct cube_target *t, struct cube_buf *out);

/* mkdir, rmdir. -EINVAL, -EEXIST; what listening says. rmdir cuts what is connected. */
int cube_port_create(struct cube_cube *c, const char *name, struct cube_port **ret, struct cube_err *err);
int cube_port_remove(struct cube_port *p, struct cube_err *err);
struct cube_port *cube_port_find(struct cube_cube *c, const char *name);
struct cube_port *cube_port_next(struct cube_cube *c, uint64_t seq);
struct cube_port *cube_port_ref(struct cube_port *p);
void cube_port_unref(struct cube_port *p);

/* `create ... ports=A,B`: exposed when the sandbox is accepted. take: names only; start: listens, all or none. */
int cube_ports_take(struct cube_cube *c, const char *names, struct cube_err *err);
int cube_ports_start(struct cube_cube *c, struct cube_err *err);
/* After a load: listens again; what cannot is noted in the sandbox's `error`. */
void cube_ports_resume(struct cube_cube *c);
json_t *cube_ports_state(const struct cube_cube *c);
int cube_ports_load(struct cube_cube *c, const json_t *list);

/* ---- what its ctl does; each is on disk on return ---- */
int cube_port_sign(struct cube_port *p, uint32_t seconds, struct cube_err *err);
int cube_port_revoke(struct cube_port *p, struct cube_err *err); /* cuts what is connected */
int cube_port_set_word(struct cube_port *p, const char *word, struct cube_err *err);
int cube_port_set_open(struct cube_port *p, bool open, struct cube_err *err);
/* ADDRESS:PORT, [ADDRESS]:PORT; port 0: a free one. */
int cube_port_listen(struct cube_port *p, const char *where, struct cube_err *err);
/* Is @word the one that opens it now? */
bool cube_port_opens(const struct cube_port *p, const char *word);
/* The word; "" where there is none that is good. */
const char *cube_port_word(const struct cube_port *p, char out[CUBE_TOKEN_TEXT]);
int cube_port_url(const struct cube_port *p, struct cube_buf *out); /* without a newline */

/* ---- what listens inside (inside.c) ---- */

/* Asks behind; the answer wakes cube.ports.asked.answered, also one that could not be had. */
void cube_ports_ask(struct cube_cube *c);
/* Does something listen at @p, as far as that was asked? */
bool cube_port_listening(const struct cube_port *p);
/* Tries a connection behind; @p->changed is woken when it was answered, else a moment later, so that who waits
 * knocks again. */
void cube_port_knock(struct cube_port *p);

#endif
