/* SPDX-License-Identifier: Apache-2.0 */
/* A decorator that makes things go wrong: operations fail, lose their answer, come late, or wait until
 * they are released.
 *
 * What is to happen is a list of rules, which may be changed at any time and on any thread. An operation
 * is named as in struct cube_backend_ops ("create", "template_import"); "any" stands for all of them. */
#ifndef CUBEFS_BACKENDS_DECOR_FAULT_H
#define CUBEFS_BACKENDS_DECOR_FAULT_H

#include <stdint.h>

#include "backends/backend.h"

struct cube_fault; /* the rules */

/* Wraps @inner and takes it over; *ret_rules are part of the decorator and end with it. -ENOMEM; then
 * @inner is still the caller's. */
int cube_fault_wrap(struct cube_backend *inner, struct cube_backend **ret, struct cube_fault **ret_rules,
		    struct cube_err *err);

/* The @nth call of @op from now on (1 is the next; 0: each) fails with @code, a negative errno. */
int cube_fault_fail(struct cube_fault *f, const char *op, int code, unsigned long nth);
/* The same, but it is done first, and only its answer is lost. */
int cube_fault_lose(struct cube_fault *f, const char *op, int code, unsigned long nth);
/* Each call of @op takes that much longer; -EINTR when it is cancelled meanwhile. */
int cube_fault_delay(struct cube_fault *f, const char *op, uint32_t ms);
/* Calls of @op wait until cube_fault_release; -EINTR when they are cancelled meanwhile. */
int cube_fault_hold(struct cube_fault *f, const char *op);
/* Lets go what is held and forgets all rules for @op. */
void cube_fault_release(struct cube_fault *f, const char *op);
/* All four: 0, -EINVAL no such operation, -ENOMEM. */

/* The same as text, as in the configuration: @key is "fail" or "lose" (OP:ERRNO[:N], ...) or "delay"
 * (OP:MS, ...); -EINVAL with a sentence. */
int cube_fault_parse(struct cube_fault *f, const char *key, const char *value, struct cube_err *err);

/* The names of operations, "any" first; NULL at the end. */
const char *cube_fault_op(unsigned n);

/* How often @op was called ("any": all), the failed calls too. */
unsigned long cube_fault_calls(struct cube_fault *f, const char *op);

#endif
