/* SPDX-License-Identifier: Apache-2.0 */
/* A template of a backend as `backends/NAME/templates/T` shows it. Under the domain lock. */
#ifndef CUBEFS_CTL_TEMPLATE_H
#define CUBEFS_CTL_TEMPLATE_H

#include "backends/backend.h"
#include "ctl/domain.h"

struct cube_template_entry {
	unsigned refs;
	struct cube_list link; /* service.templates */
	struct cube_service *service;
	uint64_t seq;
	struct cube_template info; /* info.state "none" until imported */
	bool removed;
	bool listed;         /* the backend has it */
	uint64_t stamp;      /* when an import ended: an older list does not know it */
	struct cube_buf log; /* progress lines, the last 256 KiB */
	struct cube_err failure;
	struct cube_cancel *import; /* an import is under way */
	struct cube_waitq changed;
	void *tree_data;
};

/* mkdir, rmdir. -EEXIST, -EINVAL, -EBUSY in use or importing. rmdir removes behind. */
int cube_template_create(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err);
int cube_template_remove(struct cube_template_entry *t, struct cube_err *err);
struct cube_template_entry *cube_template_find(struct cube_service *s, const char *name);
struct cube_template_entry *cube_template_next(struct cube_service *s, uint64_t seq);
struct cube_template_entry *cube_template_ref(struct cube_template_entry *t);
void cube_template_unref(struct cube_template_entry *t);

#endif
