/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's interface where libfuse's header is older than it: constants and one reply. */
#ifndef CUBEFS_FS_FUSE_RAW_H
#define CUBEFS_FS_FUSE_RAW_H

#include <stdint.h>

#define CUBE_FOPEN_DIRECT_IO  (1u << 0)
#define CUBE_FOPEN_KEEP_CACHE (1u << 1)
#define CUBE_FOPEN_STREAM     (1u << 4) /* Linux 5.1: no position; a waiting read does not block a write */
#define CUBE_FOPEN_NOFLUSH    (1u << 5) /* Linux 5.16: a close of it is not told */

struct cube_fuse_open_out {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
};

#endif
