/* SPDX-License-Identifier: Apache-2.0 */
/* For the test of the pool: threads that end sooner. */
#ifndef CUBEFS_BACKENDS_BASE_POOL_PRIV_H
#define CUBEFS_BACKENDS_BASE_POOL_PRIV_H

#include "backends/base/pool.h"

/* As cube_pool_new; a thread ends after @idle_ms. */
struct cube_pool *cube_pool_new_idle(unsigned max, unsigned idle_ms);

#endif
