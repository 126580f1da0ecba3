/* SPDX-License-Identifier: Apache-2.0 */
/* The writing side of a spool: the order index and the hole. Needs nothing else of this folder, so that the
 * agent can be linked with it alone. */
#include "backends/base/spool.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPOOL_BLOCK UINT64_C(65536)   /* holes are made of whole ones */
#define SPOOL_LAZY  UINT64_C(1048576) /* the least that is worth a system call */
#define SPOOL_SLACK UINT64_C(1048576) /* kept above the limit, for a reader whose view is a moment old */

int cube_spool_note(int order_fd, int *last, int err, uint64_t total, uint64_t stream_total)
{
	uint64_t record[2] = {htole64(total | (err ? CUBE_SPOOL_STDERR : 0)), htole64(stream_total)};
	struct stat st;
	off_t end;
	ssize_t n;

	if (*last == (err != 0))
		return 0;
	if (fstat(order_fd, &st) < 0)
		return -errno;
	/* Half a record, left by a full disk or a crash, is written over. */
	end = st.st_size - st.st_size % CUBE_SPOOL_RECORD;
	do
		n = pwrite(order_fd, record, sizeof(record), end);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(record))
		return n < 0 ? -errno : -ENOSPC;
	*last = err != 0;
	return 0;
}

void cube_spool_punch(int out_fd, uint64_t total, uint64_t limit, uint64_t keep_from, uint64_t *punched)
{
	uint64_t half = limit / 2, start, end;

	if (total <= limit || total - half < SPOOL_SLACK)
		return;
	end = total - half - SPOOL_SLACK;
	if (end > keep_from)
		end = keep_from;
	end -= end % SPOOL_BLOCK;
	start = half + (SPOOL_BLOCK - half % SPOOL_BLOCK) % SPOOL_BLOCK;
	if (start < *punched)
		start = *punched;
	if (end < start || end - start < SPOOL_LAZY)
		return;
	/* Where the file system cannot do it the disk keeps more than the limit; nothing else changes. */
	(void)fallocate(out_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
			(off_t)(end - start));
	*punched = end;
}
