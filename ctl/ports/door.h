/* SPDX-License-Identifier: Apache-2.0 */
/* Where an exposed port is listened for on this side, and the connections through it. Private to ctl/ports. */
#ifndef CUBEFS_CTL_PORTS_DOOR_H
#define CUBEFS_CTL_PORTS_DOOR_H

#include "ctl/domain.h"
#include "ctl/ports/port.h"

struct cube_door;

/* Listens at @host, @at (0: a free port), which is what *ret_at says. Under the lock; accepting begins on the
 * loop. */
int cube_door_open(struct cube_port *p, const char *host, uint16_t at, uint16_t *ret_at,
		   struct cube_door **ret, struct cube_err *err);
/* No connection is accepted any more; NULL is harmless. Under the lock. */
void cube_door_close(struct cube_door *d);
/* There is room for connections again. Under the lock. */
void cube_door_again(struct cube_door *d);

/* All ports together have room again (settings' port_connections). Under the lock. */
void cube_doors_again(struct cube_domain *d);

/* A connection was accepted: takes @fd. On the loop's thread, under the lock. */
void cube_conn_through(struct cube_port *p, int fd);
/* Ends all connections of @p. Under the lock. */
void cube_conns_cut(struct cube_port *p);
/* After the loop ended: those that are left forget the domain. */
void cube_conns_abandon(struct cube_domain *d);

#endif
