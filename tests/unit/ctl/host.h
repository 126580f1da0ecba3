/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of backend for these tests, `host`: the sandboxes of one `mem` that outlives every domain, as those
 * of a real machine do, with rules for what is to go wrong. */
#ifndef CUBEFS_TESTS_UNIT_CTL_HOST_H
#define CUBEFS_TESTS_UNIT_CTL_HOST_H

#include <stdatomic.h>

#include "backends/decor/fault.h"
#include "tests/unit/ctl/stage.h"

/* A stage whose loop stays, with an empty `host`. */
void host_open(struct stage *s);
void host_close(struct stage *s);
struct cube_fault *host_faults(void);
/* What it was told of the end of a life; written on pool threads, one call at a time for a sandbox. */
struct host_told {
	atomic_uint calls;
	_Atomic uint64_t wall;
	_Atomic enum cube_expiry what;
	atomic_bool refuses;
};
struct host_told *host_told(void);
/* How many sandboxes there are. */
unsigned host_count(void);

#endif
