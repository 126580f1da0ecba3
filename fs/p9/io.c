/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a stream. */
#include <errno.h>
#include <unistd.h>

#include "fs/p9/priv.h"

static ssize_t io_result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

ssize_t cube_p9_io_recv(struct p9_io *io, void *data, size_t len)
{
	if (io->tls != NULL)
		return cube_p9_tls_recv(io->tls, data, len);
	return io_result(read(io->in, data, len));
}

/* SIGPIPE is ignored in the whole daemon. */
ssize_t cube_p9_io_send(struct p9_io *io, const void *data, size_t len)
{
	if (io->tls != NULL)
		return cube_p9_tls_send(io->tls, data, len);
	return io_result(write(io->out, data, len));
}

bool cube_p9_io_pending(const struct p9_io *io)
{
	return io->tls != NULL && cube_p9_tls_pending(io->tls);
}

bool cube_p9_io_wants_out(const struct p9_io *io)
{
	return io->tls != NULL && cube_p9_tls_wants_out(io->tls);
}

const char *cube_p9_io_why(const struct p9_io *io, int code)
{
	const char *why = io->tls != NULL ? cube_p9_tls_why(io->tls) : "";

	return why[0] != '\0' ? why : cube_errno_text(code);
}

void cube_p9_io_close(struct p9_io *io)
{
	cube_p9_tls_free(cube_steal(io->tls));
	if (io->out >= 0 && io->out != io->in)
		(void)close(io->out);
	if (io->in >= 0)
		(void)close(io->in);
	io->in = io->out = -1;
}
