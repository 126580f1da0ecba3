/* SPDX-License-Identifier: Apache-2.0 */
/* Where a template grows: TEMPLATES/.NAME.tmp. */
#ifndef CUBEFS_BACKENDS_LOCAL_IMPORT_TMP_H
#define CUBEFS_BACKENDS_LOCAL_IMPORT_TMP_H

#include "backends/local/local_priv.h"

struct cube_local_import_tmp {
	char entry[CUBE_ID_MAX + 8]; /* .NAME.tmp */
	char name[CUBE_ID_MAX + 1];
	char kept[96]; /* the file in it that an interruption leaves; "": none */
	int dir;       /* locked; -1: not ours */
};
#define CUBE_LOCAL_IMPORT_TMP                                                                                \
	{                                                                                                    \
		.dir = -1                                                                                    \
	}

/* Makes and locks it; *ret_root is an empty root in it. -EBUSY: somebody else has it. */
int cube_local_import_tmp_begin(struct cube_local *b, const struct cube_template_order *o,
				struct cube_local_import_tmp *ret, int *ret_root, struct cube_err *err);
/* The root with all that is in it is moved aside; *ret_root is a new one. */
int cube_local_import_tmp_aside(struct cube_local_import_tmp *t, const struct cube_ns_ids *ids, int *ret_root,
				struct cube_err *err);
/* It becomes the template, in place of one of that name that nobody uses (-EBUSY). */
int cube_local_import_tmp_name(struct cube_local *b, struct cube_local_import_tmp *t, struct cube_err *err);
/* Removes what is in it; with @keep not what was downloaded. */
void cube_local_import_tmp_drop(struct cube_local *b, struct cube_local_import_tmp *t, bool keep);
/* Lets it go. */
void cube_local_import_tmp_end(struct cube_local_import_tmp *t);

#endif
