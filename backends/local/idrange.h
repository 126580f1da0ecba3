/* SPDX-License-Identifier: Apache-2.0 */
/* Root's range of ids: one that nobody on this machine has, kept from its first use on. */
#ifndef CUBEFS_BACKENDS_LOCAL_IDRANGE_H
#define CUBEFS_BACKENDS_LOCAL_IDRANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"

#define CUBE_LOCAL_IDS      65536u  /* how many */
#define CUBE_LOCAL_IDS_FROM 100000u /* where the search begins */

/* Who has some of @first to @first + CUBE_LOCAL_IDS - 1 by the files subuid, subgid, passwd and group in the
 * directory @etc: false: nobody. @ret_next (may be NULL): the first number behind it; @ret_who (may be NULL): a line
 * for people. Files that are not there say nothing. */
bool cube_local_idrange_taken(const char *etc, uint32_t first, uint32_t *ret_next, char ret_who[128]);

/* The range of the state directory @state_dir: what the file `uid_base` in it says; for a directory that had
 * sandboxes before there was such a file CUBE_LOCAL_IDS_FROM; else the first that nobody has, written down.
 * -ENOSPC: there is none. */
int cube_local_idrange(const char *state_dir, const char *etc, uint32_t *ret_first, struct cube_err *err);

#endif
