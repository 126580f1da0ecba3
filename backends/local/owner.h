/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a sandbox is: the labels it was made with, for who does not know it; adoption. */
#ifndef CUBEFS_BACKENDS_LOCAL_OWNER_H
#define CUBEFS_BACKENDS_LOCAL_OWNER_H

#include "backends/backend.h"

/* In the sandbox's directory @dir; nothing is written where there are none. */
int cube_local_labels_write(int dir, const struct cube_spec *spec, struct cube_err *err);
/* NAME=VALUE lines; none or not to be read: empty. */
void cube_local_labels_read(int dir, struct cube_buf *out);

int cube_local_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
		     struct cube_err *err);
int cube_local_let_go(struct cube_backend *b, const char *id, struct cube_err *err);

#endif
