/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled filter of system calls. */
#include "backends/local/filter.h"

#include "backends/base/alloc.h"
#include "backends/base/base64.h"
#include "backends/base/buf.h"
#include "backends/base/file.h"

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <stdio.h>

const char *cube_local_filter_text(struct cube_local_filter *f)
{
	return atomic_load(&f->text);
}

void cube_local_filter_keep(struct cube_local_filter *f, int stage, const char *id)
{
	struct cube_buf code = CUBE_BUF(BPF_MAXINSNS * sizeof(struct sock_filter));
	struct cube_buf coded = CUBE_BUF(2 * code.max);
	char path[64], *text = NULL, *none = NULL;

	if (atomic_load(&f->text))
		return;
	(void)snprintf(path, sizeof(path), CUBE_FILTER_CRUN_STATE "/%s/seccomp.bpf", id);
	if (cube_file_read(stage, path, &code) == 0 && code.len > 0 &&
	    code.len % sizeof(struct sock_filter) == 0 && cube_base64_add(&coded, code.data, code.len) == 0)
		text = cube_buf_steal(&coded, NULL);
	cube_buf_done(&coded);
	cube_buf_done(&code);
	if (text && !atomic_compare_exchange_strong(&f->text, &none, text))
		cube_free(text); /* two launches at once: one is enough */
}

void cube_local_filter_done(struct cube_local_filter *f)
{
	cube_free(atomic_exchange(&f->text, NULL));
}
