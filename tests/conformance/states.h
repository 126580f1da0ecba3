/* SPDX-License-Identifier: Apache-2.0 */
/* For the checks of checkpoints and of what is made of them: a state is a text in a file of the root and in one of
 * /workspace. */
#ifndef CUBEFS_TESTS_CONFORMANCE_STATES_H
#define CUBEFS_TESTS_CONFORMANCE_STATES_H

#include "tests/conformance/conformance.h"

/* Ids of checkpoints. */
#define ONE   "00000000000000c1"
#define TWO   "00000000000000c2"
#define THREE "00000000000000c3"

void states_take(struct subject *s, const char *id, const char *cp);
void states_drop(struct subject *s, const char *cp);
/* The descriptor of /workspace in @root, borrowed. */
int states_workspace(const struct cube_root *root);
void states_put(struct subject *s, const char *id, const char *text);
void states_expect(struct subject *s, const char *id, const char *text);
/* What differs, a line each: of a sandbox (@cp NULL) or a checkpoint, against @base (NULL: as it came). */
void states_expect_changes(struct subject *s, const char *id, const char *cp, const char *base,
			   const char *expected);

#endif
