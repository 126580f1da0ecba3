/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of 9P as any bytes. The first says which dialect. What is decoded lies within what was given, and
 * encodes to the same bytes again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/p9.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void within(const void *at, size_t len, const uint8_t *data, size_t size)
{
	const uint8_t *p = at;

	must(len == 0 || (p >= data && p + len <= data + size));
}

static void check(const struct cube_p9_msg *m, const uint8_t *data, size_t size)
{
	within(m->name.s, m->name.len, data, size);
	within(m->second.s, m->second.len, data, size);
	within(m->lock.client.s, m->lock.client.len, data, size);
	within(m->stat.extension.s, m->stat.extension.len, data, size);
	if (m->data != NULL)
		within(m->data, m->count, data, size);
	must(m->n_names <= CUBE_P9_WALK && m->n_qids <= CUBE_P9_WALK);
	for (unsigned i = 0; i < m->n_names; i++)
		within(m->names[i].s, m->names[i].len, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum cube_p9_dialect dialects[] = {CUBE_P9_2000, CUBE_P9_2000U, CUBE_P9_2000L};
	struct cube_buf back = CUBE_BUF(1u << 20);
	enum cube_p9_dialect d;
	struct cube_p9_dirent e;
	struct cube_p9_stat st;
	struct cube_p9_msg m;

	if (size == 0)
		return 0;
	d = dialects[data[0] % 3];
	data++;
	size--;
	if (cube_p9_decode(data, size, d, &m) == 0) {
		check(&m, data, size);
		must(cube_p9_encode(&m, d, &back) == 0);
		/* an old Tfsync has no last field */
		if (m.type != CUBE_P9_TFSYNC)
			must(back.len == size && memcmp(back.data, data, size) == 0);
	}
	cube_buf_done(&back);
	if (cube_p9_dirent_get(data, size, &e) > 0)
		within(e.name.s, e.name.len, data, size);
	if (cube_p9_stat_get(data, size, d, &st) > 0)
		within(st.muid.s, st.muid.len, data, size);
	return 0;
}
