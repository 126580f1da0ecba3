/* SPDX-License-Identifier: Apache-2.0 */
/* Files of our own state: whole reads, atomic replacement, removal of trees. */
#ifndef CUBEFS_BACKENDS_BASE_FILE_H
#define CUBEFS_BACKENDS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"

/* Adds the content of @name below @dirfd to @out, up to its ceiling (-EMSGSIZE above). Links are followed. */
int cube_file_read(int dirfd, const char *name, struct cube_buf *out);

/* Replaces @name (an entry of @dirfd, no '/') in one step: temporary file, fsync, rename, fsync of the
 * directory. A crash at any instruction leaves the old content or the new one, and perhaps a file
 * `.NAME.new.NUMBER` that nobody reads. @mode is exact, whatever the umask. @dirfd may be O_PATH. A failure
 * of the last step (the directory's fsync) is reported although the new content is visible already. */
int cube_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode);

/* All of it, or a negative errno; goes on after EINTR and short writes. */
int cube_file_write_all(int fd, const void *data, size_t len);

/* mkdir where it may exist already (then its mode stays; a new one's is @mode less the umask), then an
 * O_PATH|O_DIRECTORY descriptor of it, never through a link (-ENOTDIR). @ret_fd may be NULL. */
int cube_file_mkdir(int dirfd, const char *name, mode_t mode, int *ret_fd);
/* The same for each part of an absolute path; parents are made 0755, the last one @mode. Parents that exist
 * may be links (/var/run is one), the last part may not. */
int cube_file_mkdir_path(const char *path, mode_t mode);

/* Owner and mode of what is made; ids (uid_t)-1, (gid_t)-1: as they come. */
struct cube_file_owner {
	uid_t uid;
	gid_t gid;
	mode_t mode; /* exact, whatever the umask */
};
/* An O_PATH descriptor of the directory @path below @dirfd (leading slashes mean nothing, "" is @dirfd itself),
 * never through a link: -ELOOP; -EINVAL for "." and ".." in it. With @make what is missing is made. Somebody
 * who moves things meanwhile can keep it from being found, not lead it elsewhere. */
int cube_file_beneath(int dirfd, const char *path, const struct cube_file_owner *make);

/* Calls @fn for each name in the directory @name below @dirfd (never through a link) but "." and "..", in no
 * order; @dir is a descriptor of it. A result other than 0 ends the look and is returned; -errno where it
 * cannot begin. What @fn makes or removes there meanwhile may be seen or not. */
int cube_file_each(int dirfd, const char *name, int (*fn)(void *ctx, int dir, const char *name), void *ctx);

/* Removes @name and all below it, of any depth, whatever the modes. Follows no link, and leaves alone
 * whatever is mounted on @name or below it (-EXDEV). Goes on after a failure and returns the first one. Not
 * there is success. */
int cube_file_remove_tree(int dirfd, const char *name);

#define CUBE_FDS_MAX 253 /* descriptors of one message: the kernel's SCM_MAX_FD */

/* Sends 1 or more bytes and with them @nfds descriptors (copies: the caller's stay open), which arrive with
 * the first byte. Bytes sent, or -errno; no SIGPIPE. */
ssize_t cube_fd_send(int sock, const void *data, size_t len, const int *fds, unsigned nfds);
/* Takes bytes (0: the other end closed) and *ret_n descriptors (0: none came), which are the caller's to
 * close and have close-on-exec set. More than @max came: all are closed, -EMSGSIZE. */
ssize_t cube_fd_recv(int sock, void *data, size_t len, int *fds, unsigned max, unsigned *ret_n);

#endif
