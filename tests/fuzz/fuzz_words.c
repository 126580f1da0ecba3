/* SPDX-License-Identifier: Apache-2.0 */
/* Verb lines: any bytes split without harm; what was split is within what came in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cube_err err = {0};
	char **words = NULL;
	size_t bytes = 0;
	unsigned n = 0;

	if (cube_words_split((const char *)data, size, &words, &n, &err) < 0) {
		if (words != NULL || err.text[0] == '\0')
			abort();
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		bytes += strlen(words[i]);
	if (bytes > size || words[n] != NULL)
		abort();
	cube_free(words);
	return 0;
}
