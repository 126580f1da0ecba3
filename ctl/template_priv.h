/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: templates, their import and their builds. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_TEMPLATE_PRIV_H
#define CUBEFS_CTL_TEMPLATE_PRIV_H

#include "ctl/caller.h"
#include "ctl/cube.h"
#include "ctl/domain.h"
#include "ctl/template.h"

/* template.c. load: those that mkdir made and that still wait for an import; take: what the backend lists. */
int cube_templates_load(struct cube_domain *d, struct cube_service *s, struct cube_err *err);
struct cube_template_known {
	struct cube_template t;
	struct cube_template_config config;
};
void cube_templates_take(struct cube_domain *d, struct cube_service *s, struct cube_template_known *list,
			 size_t n, uint64_t stamp);
void cube_templates_close(struct cube_service *s);
/* template_record.c: keys, texts and layers, STATE/templates/BACKEND/NAME/record.json. */
int cube_template_record_save(struct cube_template_entry *t, struct cube_err *err);
void cube_template_record_load(struct cube_template_entry *t);
/* build.c: layers of @old that @now has not are removed, where nothing else is made of them; no lock. */
void cube_build_prune(struct cube_backend *backend, const struct cube_buf *old, const struct cube_buf *now);
void cube_builds_recover(struct cube_domain *d); /* what builds left that were cut off is destroyed behind */
/* A line in its log, with the time. */
void cube_template_say(struct cube_template_entry *t, const char *line);

/* Is it there to be used (NULL: the default)? 0 and, where it is known here, *ret; -ENOENT; 1: its import is
 * under way, wait on *ret->changed. */
int cube_template_usable(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err);
/* An earlier one of that name is being removed at the backend: who makes it anew waits for `removed`. */
bool cube_template_removing(const struct cube_service *s, const char *name);
/* Starts an import; its end comes to @done under the lock. */
struct cube_import {
	struct cube_work work;
	struct cube_template_entry *entry;
	struct cube_domain *domain;
	struct cube_cancel *cancel;
	struct cube_caller by;
	char *source, *sha256; /* sha256 NULL: not said */
	/* It is made of a sandbox or of one of its checkpoints; pinned, NULL: of something else. */
	struct cube_checkpoint_entry *of;
	struct cube_waiter waits; /* for `of`, and for what was of that name */
	struct cube_template_keys keys;
	bool uefi, tpm, specialized;
	struct cube_template made; /* as the backend lists it then; name "": it does not */
	int code;
	struct cube_err err;
	void (*done)(struct cube_import *i); /* NULL: nobody waits */
	void *ctx;
};
int cube_template_import(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			 const char *source, const struct cube_create_key *keys, size_t n_keys,
			 struct cube_import **ret, struct cube_err *err);
/* As cube_template_create, and nothing is on disk before an import has made it. */
int cube_template_create_unsaved(struct cube_service *s, const char *name, struct cube_template_entry **ret,
				 struct cube_err *err);
/* The same for a template that was made for this, of a checkpoint. */
int cube_template_import_of(struct cube_template_entry *t, const struct cube_caller *by, const char *source,
			    struct cube_checkpoint_entry *of, struct cube_import **ret, struct cube_err *err);

/* template_keep.c: templates made of sandboxes. Calls off what is under way for @t. */
void cube_template_cancel(struct cube_template_entry *t);
/* A new template @name of the checkpoint @e; as cube_template_import. -EEXIST, -EOPNOTSUPP. */
int cube_template_keep(struct cube_checkpoint_entry *e, const char *name, const struct cube_caller *by,
		       struct cube_import **ret, struct cube_err *err);
/* "sandbox:NAME[/CHECKPOINT]" of @i becomes i->of, taken or being taken; nothing of another source. */
int cube_keep_source(struct cube_import *i, struct cube_err *err);
/* Lets it go again. */
void cube_keep_done(struct cube_import *i);
/* No lock: the backend makes it. */
int cube_keep_run(struct cube_import *i);
/* It is made: what its files' template does at boot, it does. */
void cube_keep_texts(struct cube_import *i);

#endif
