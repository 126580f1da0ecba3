/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ctl/ports share. Under the domain lock. */
#ifndef CUBEFS_CTL_PORTS_PRIV_H
#define CUBEFS_CTL_PORTS_PRIV_H

#include "ctl/ports/port.h"

/* In the list of @c, listening nowhere; the reference is the list's. NULL: @err says why. */
struct cube_port *cube_port_new(struct cube_cube *c, const char *name, struct cube_err *err);
/* ADDRESS:PORT in parts; -EINVAL. */
int cube_port_where(const char *where, char host[CUBE_PORT_HOST], uint16_t *ret_at, struct cube_err *err);

#endif
