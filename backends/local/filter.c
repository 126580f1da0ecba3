/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled filter of system calls. */
#include "backends/local/filter.h"

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/file.h"

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <stdint.h>
#include <stdio.h>

static const char filter_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* NULL: no memory. */
static char *filter_base64(const unsigned char *data, size_t len)
{
	char *text = cube_malloc((len + 2) / 3 * 4 + 1), *out = text;

	for (size_t i = 0; text && i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
				(n > 2 ? data[i + 2] : 0u);

		for (unsigned digit = 0; digit < 4; digit++)
			*out++ = digit <= n ? filter_digits[bits >> (18 - 6 * digit) & 63] : '=';
	}
	if (text)
		*out = 0;
	return text;
}

const char *cube_local_filter_text(struct cube_local_filter *f)
{
	return atomic_load(&f->text);
}

void cube_local_filter_keep(struct cube_local_filter *f, int stage, const char *id)
{
	struct cube_buf code = CUBE_BUF(BPF_MAXINSNS * sizeof(struct sock_filter));
	char path[64], *text = NULL, *none = NULL;

	if (atomic_load(&f->text))
		return;
	(void)snprintf(path, sizeof(path), CUBE_FILTER_CRUN_STATE "/%s/seccomp.bpf", id);
	if (cube_file_read(stage, path, &code) == 0 && code.len > 0 &&
	    code.len % sizeof(struct sock_filter) == 0)
		text = filter_base64((const unsigned char *)code.data, code.len);
	cube_buf_done(&code);
	if (text && !atomic_compare_exchange_strong(&f->text, &none, text))
		cube_free(text); /* two launches at once: one is enough */
}

void cube_local_filter_done(struct cube_local_filter *f)
{
	cube_free(atomic_exchange(&f->text, NULL));
}
