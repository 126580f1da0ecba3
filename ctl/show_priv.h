/* SPDX-License-Identifier: Apache-2.0 */
/* What the show_*.c files share: `key value` lines. */
#ifndef CUBEFS_CTL_SHOW_PRIV_H
#define CUBEFS_CTL_SHOW_PRIV_H

#include <stdint.h>

#include "ctl/show.h"
#include "ctl/verb.h"

/* "key value\n", the value escaped so that it stays one line; an absent one is "-". */
void cube_show_str(struct cube_buf *out, const char *key, const char *value);
void cube_show_num(struct cube_buf *out, const char *key, uint64_t value); /* UINT64_MAX: "-" */
void cube_show_time(struct cube_buf *out, const char *key, uint64_t wall_ns);
/* "0.500" for thousandths, "2" where they are whole */
void cube_show_milli(struct cube_buf *out, const char *key, uint64_t milli);
/* "exec files pause": names of the bits. */
void cube_show_caps(struct cube_buf *out, uint32_t caps);
/* A copy of the labels in the order of their names; calls @each for every one. */
void cube_show_labels(const struct cube_map *labels,
		      void (*each)(void *ctx, const char *name, const char *value), void *ctx);
/* As lines: "label.NAME VALUE". */
void cube_show_label_line(void *out, const char *name, const char *value);
/* The same as words in a line: " label.NAME=VALUE". */
void cube_show_label_word(void *out, const char *name, const char *value);
/* Text as (part of) one word: a blank would begin another one. */
void cube_show_word(struct cube_buf *out, const char *text, size_t len);
/* "creating", or the phase with its reason in its own word. */
const char *cube_show_job_state(const struct cube_job *j);
/* An empty line, then the usage of the verbs that work now. */
int cube_show_usage(enum cube_scope scope, void *object, struct cube_buf *out);

#endif
