/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of this machine as sandboxes have it. */
#ifndef CUBEFS_BACKENDS_NS_BIND_H
#define CUBEFS_BACKENDS_NS_BIND_H

#include "backends/backend.h"
#include "backends/ns/userns.h"

/* A detached mount of it: nodev, nosuid, read only where that is asked for, and with other ids, so that who asked for it
 * is root inside. Of an ordinary user no id but his own is to be had in it, so that nothing can be made there that
 * belongs to another one; root gets the whole range @ids of the sandbox. A descriptor; -EOPNOTSUPP: its file system has
 * no such ids. Any thread. */
int cube_ns_bind_mount(const struct cube_ns_ids *ids, const struct cube_bind *bind, struct cube_err *err);

#endif
