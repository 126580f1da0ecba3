/* SPDX-License-Identifier: Apache-2.0 */
/* A template of a backend as `backends/NAME/templates/T` shows it. Under the domain lock. */
#ifndef CUBEFS_CTL_TEMPLATE_H
#define CUBEFS_CTL_TEMPLATE_H

#include "backends/backend.h"
#include "ctl/domain.h"
#include "ctl/linelog.h"

/* Files of a template that are written as a whole. */
enum cube_template_text {
	CUBE_TEMPLATE_ALIASES,  /* names, one a line */
	CUBE_TEMPLATE_START,    /* run at each boot of a sandbox made of it */
	CUBE_TEMPLATE_READY,    /* a command, `port N` or `http URL`: when a sandbox is running */
	CUBE_TEMPLATE_BUILD,    /* steps, or a Dockerfile (ctl/recipe.h) */
	CUBE_TEMPLATE_SERVICES, /* `NAME PORT` a line: exposed by each sandbox made of it, with that name */
};
#define CUBE_TEMPLATE_TEXTS     5
#define CUBE_TEMPLATE_ALIAS_MAX 255
#define CUBE_TEMPLATE_TEXT_MAX  ((size_t)1 << 20)
#define CUBE_LAYER_NAME         33 /* bytes of a layer's name */
#define CUBE_LAYERS_TEXT        ((size_t)1 << 18)

/* Defaults of sandboxes; 0 and "": not said. */
struct cube_template_keys {
	struct cube_limits limits;
	char os[32];
};

struct cube_template_entry {
	unsigned refs;
	struct cube_list link; /* service.templates */
	struct cube_service *service;
	uint64_t seq;
	struct cube_template info;          /* info.state "none" until imported */
	struct cube_template_config config; /* as the backend says, once it is ready */
	struct cube_template_keys keys;     /* what sandboxes made of it get that name no other */
	struct cube_buf texts[CUBE_TEMPLATE_TEXTS];
	bool removed;
	bool unsaved;            /* made for an import that has not ended: it goes with a failure of that */
	bool listed;             /* the backend has it */
	uint64_t stamp;          /* when an import ended: an older list does not know it */
	struct cube_linelog log; /* progress lines, the last 256 KiB */
	struct cube_err failure;
	unsigned percent;           /* of the import */
	struct cube_buf layers;     /* names of those that builds made, one a line, the lowest first */
	char box[17];               /* mark of the sandbox of a step that is under way; "": none */
	char step[160];             /* of the build; "": it is an import */
	struct cube_cancel *import; /* an import or a build is under way */
	struct cube_checkpoint_entry *taking; /* what the import waits for, borrowed; NULL: nothing */
	struct cube_waitq changed;
	void *tree_data;
};

/* mkdir, rmdir. -EEXIST, -EINVAL, -EBUSY in use or importing. rmdir removes behind. */
int cube_template_create(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err);
int cube_template_remove(struct cube_template_entry *t, struct cube_err *err);
/* By its name alone. */
struct cube_template_entry *cube_template_find(struct cube_service *s, const char *name);
/* 1 to 255 printable bytes without blanks: a name, or image:REFERENCE. */
bool cube_template_alias_ok(const char *word);
/* As `template=` takes it: a name, or an alias, or image:REFERENCE where one of that alias is meant. */
struct cube_template_entry *cube_template_named(struct cube_service *s, const char *word);
/* -EINVAL: it cannot be such a text; the last line counts where it is @final or ended. */
int cube_template_check_text(const struct cube_template_entry *t, enum cube_template_text which,
			     const char *text, size_t len, bool final, struct cube_err *err);
/* The new whole, checked and kept on disk. -EEXIST: an alias that is another template's. */
int cube_template_set_text(struct cube_template_entry *t, enum cube_template_text which, const char *text,
			   size_t len, struct cube_err *err);
struct cube_template_entry *cube_template_next(struct cube_service *s, uint64_t seq);
struct cube_template_entry *cube_template_ref(struct cube_template_entry *t);
void cube_template_unref(struct cube_template_entry *t);

#endif
