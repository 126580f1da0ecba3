/* SPDX-License-Identifier: Apache-2.0 */
/* What a template is built from, as steps or as a Dockerfile: whatever is accepted can be carried out as it stands. The
 * first byte says whether the text is complete. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(struct cube_step *s)
{
	const char *text = cube_buf_str(&s->text);

	if (s->line == 0 || (s->kind == CUBE_STEP_COPY) != (s->to != NULL))
		abort();
	if (s->kind == CUBE_STEP_ENV && strchr(text, '=') == NULL)
		abort();
	if (s->kind == CUBE_STEP_FROM && text[0] == '\0')
		abort();
	if (s->kind == CUBE_STEP_WORKDIR && text[0] != '/')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cube_recipe r = {0};
	struct cube_err err = {0};

	if (size == 0)
		return 0;
	int code = cube_recipe_parse((const char *)data + 1, size - 1, (data[0] & 1) != 0, &r, &err);

	if (code < 0 && (err.text[0] == '\0' || r.steps != NULL || r.n != 0))
		abort();
	if (code < 0)
		return 0;
	if (r.n > CUBE_RECIPE_STEPS)
		abort();
	for (size_t i = 0; i < r.n; i++)
		fuzz_check(&r.steps[i]);
	cube_recipe_done(&r);
	return 0;
}
