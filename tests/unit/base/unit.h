/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the base layer share: cmocka with the headers that it wants first, and a scratch
 * directory. */
#ifndef CUBEFS_TESTS_UNIT_BASE_UNIT_H
#define CUBEFS_TESTS_UNIT_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct place {
	char path[64];
	int fd; /* O_RDONLY */
};

/* Fixtures: *state is a struct place with an empty directory, removed afterwards. */
int place_setup(void **state);
int place_teardown(void **state);

#endif
