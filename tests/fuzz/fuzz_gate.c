/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection says to an exposed port: without the word nothing goes in, with it the word does not; and it is
 * the same however the bytes are cut. The first byte says what kind of port and how they are cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ports/gate.h"

#define FUZZ_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool fuzz_opens(void *ctx, const char *word)
{
	return *(const bool *)ctx && strcmp(word, "good") == 0;
}

struct fuzz_said {
	struct cube_buf on, back;
	enum cube_relay_verdict v;
};

static struct fuzz_said fuzz_say(uint8_t kind, bool *opens, const char *data, size_t size, size_t piece)
{
	struct cube_gate g = {.open = (kind & 1) != 0,
			      .own = (kind & 2) != 0,
			      .cookie = "cubefs_me",
			      .port = "80",
			      .opens = fuzz_opens,
			      .ctx = opens};
	struct fuzz_said s = {CUBE_BUF(FUZZ_MAX), CUBE_BUF(FUZZ_MAX), CUBE_RELAY_LOOK};

	if (cube_gate_init(&g) < 0)
		abort();
	for (size_t at = 0; at < size && s.v == CUBE_RELAY_LOOK; at += piece)
		s.v = cube_gate_look(&g, data + at, size - at < piece ? size - at : piece, false, &s.on,
				     &s.back);
	cube_gate_done(&g);
	if (s.on.len > 2 * size) /* a bare newline becomes a whole one */
		abort();
	return s;
}

static void fuzz_done(struct fuzz_said *s)
{
	cube_buf_done(&s->on);
	cube_buf_done(&s->back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool yes = true, no = false;
	struct fuzz_said whole, cut;
	const char *text = (const char *)data + 1;

	if (size < 2 || size > 65536)
		return 0;
	size--;
	/* Nobody's: without the word not a byte goes in. */
	whole = fuzz_say(0, &no, text, size, size);
	if (whole.on.len > 0 || whole.v == CUBE_RELAY_PASS)
		abort();
	fuzz_done(&whole);
	whole = fuzz_say(data[0] & 3, &yes, text, size, size);
	cut = fuzz_say(data[0] & 3, &yes, text, size, 1 + (data[0] >> 2));
	/* What passes goes on behind the gate; until then it is the same bytes. */
	if (cut.on.len > whole.on.len ||
	    (cut.on.len > 0 && memcmp(cut.on.data, whole.on.data, cut.on.len) != 0) ||
	    (whole.v != cut.v && whole.v != CUBE_RELAY_PASS))
		abort();
	fuzz_done(&whole);
	fuzz_done(&cut);
	return 0;
}
