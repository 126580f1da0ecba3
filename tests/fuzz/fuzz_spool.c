/* SPDX-License-Identifier: Apache-2.0 */
/* An order index from inside a sandbox: whatever it says, reads stay within the output, end, and agree with
 * the size that was told where they work. Input: four 16 bit numbers (total, err_total, limit, offset), then
 * the index. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 8

static uint64_t head_number(const uint8_t *data, size_t n)
{
	return data[2 * n] | (uint64_t)data[2 * n + 1] << 8;
}

static void fuzz_read(const struct cube_spool_view *v, enum cube_stream stream, uint64_t offset)
{
	static char out[2 * (UINT16_MAX + CUBE_SPOOL_MARKER)];
	uint64_t pos = 0, size = cube_spool_size(v, stream), steps = 0;
	ssize_t n = cube_spool_pread(v, stream, out, sizeof(out), 0);

	if (size > v->total + CUBE_SPOOL_MARKER || (n < 0 && n != -EIO) || (n >= 0 && (uint64_t)n > size))
		abort();
	n = cube_spool_pread(v, stream, out, 100, offset);
	if (n > 100 || (n > 0 && offset + (uint64_t)n > size))
		abort();
	while ((n = cube_spool_follow(v, stream, out, CUBE_SPOOL_MARKER, &pos)) > 0) {
		if (n > CUBE_SPOOL_MARKER || ++steps > v->total + 2)
			abort();
	}
	if (n < 0 && n != -EIO)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cube_spool_view v;

	if (size < HEAD)
		return 0;
	v = (struct cube_spool_view){.total = head_number(data, 0),
				     .err_total = head_number(data, 1),
				     .limit = head_number(data, 2)};
	v.out_fd = memfd_create("out", MFD_CLOEXEC);
	v.order_fd = memfd_create("order", MFD_CLOEXEC);
	if (v.out_fd < 0 || v.order_fd < 0 || ftruncate(v.out_fd, (off_t)v.total) < 0 ||
	    pwrite(v.order_fd, data + HEAD, size - HEAD, 0) != (ssize_t)(size - HEAD))
		abort();
	for (int s = CUBE_STREAM_OUTPUT; s <= CUBE_STREAM_STDERR; s++)
		fuzz_read(&v, (enum cube_stream)s, head_number(data, 3));
	(void)close(v.out_fd);
	(void)close(v.order_fd);
	return 0;
}
