/* SPDX-License-Identifier: Apache-2.0 */
/* Files of our own state: whole reads, atomic replacement, removal of trees. */
#ifndef CUBEFS_BACKENDS_BASE_FILE_H
#define CUBEFS_BACKENDS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"

/* Adds the content of @name below @dirfd to @out, up to its ceiling (-EMSGSIZE above). */
int cube_file_read(int dirfd, const char *name, struct cube_buf *out);

/* Replaces @name in one step: temporary file, fsync, rename, fsync of the directory. */
int cube_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode);

/* All of it, or a negative errno; goes on after EINTR and short writes. */
int cube_file_write_all(int fd, const void *data, size_t len);

/* mkdir where it may exist already, then an O_PATH|O_DIRECTORY descriptor of it (never through a link). */
int cube_file_mkdir(int dirfd, const char *name, mode_t mode, int *ret_fd);
/* The same for each part of an absolute path; parents are made 0755, the last one @mode. */
int cube_file_mkdir_path(const char *path, mode_t mode);

/* Removes @name and all below it. Follows no link and leaves the file system of @dirfd/@name alone
 * where another is mounted (-EXDEV). Not there is success. */
int cube_file_remove_tree(int dirfd, const char *name);

/* Passes a descriptor or takes one over a unix socket: -errno or bytes. *ret_fd = -1 when none came. */
ssize_t cube_fd_send(int sock, const void *data, size_t len, const int *fds, unsigned nfds);
ssize_t cube_fd_recv(int sock, void *data, size_t len, int *fds, unsigned max, unsigned *ret_n);

#endif
