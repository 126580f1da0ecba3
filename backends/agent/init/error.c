/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of errors. */
#include "backends/agent/init/error.h"

#include <stdlib.h>
#include <string.h>

const char *init_error(int code)
{
	return strerror(abs(code)); /* NOLINT(concurrency-mt-unsafe): the agent has one thread */
}
