/* SPDX-License-Identifier: Apache-2.0 */
/* The spool of a process: it writes to the descriptors that the caller handed over. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backends/base/spool.h"
#include "backends/mem/mem_priv.h"

static int out_dup(int fd, int *ret)
{
	*ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd >= 0 && *ret < 0 ? -errno : 0;
}

int mem_out_open(struct mem_out *o, const struct cube_link_start *s)
{
	int r;

	*o = (struct mem_out){.fd = -1, .order_fd = -1, .limit = s->limit, .last = -1};
	r = out_dup(s->out_fd, &o->fd);
	if (r == 0 && !s->merge && !s->tty && s->session == 0)
		r = out_dup(s->order_fd, &o->order_fd);
	if (r < 0)
		mem_out_close(o);
	return r;
}

void mem_out_close(struct mem_out *o)
{
	cube_close_auto(&o->fd);
	cube_close_auto(&o->order_fd);
	o->fd = o->order_fd = -1;
}

static int out_pwrite(int fd, const char *data, size_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int mem_out_write(struct mem_out *o, bool to_stderr, const void *data, size_t len)
{
	bool err = to_stderr && o->order_fd >= 0;
	uint64_t stream_total = err ? o->err_total : o->total - o->err_total;
	int r = len == 0 ? 0 : out_pwrite(o->fd, data, len, o->total);

	if (r == 0 && len > 0 && o->order_fd >= 0)
		r = cube_spool_note(o->order_fd, &o->last, err, o->total, stream_total);
	if (r < 0)
		return r;
	o->total += len;
	if (err)
		o->err_total += len;
	cube_spool_punch(o->fd, o->total, o->limit, UINT64_MAX, &o->punched);
	return 0;
}
