/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's interface where libfuse's header is older than it: constants and one reply. */
#ifndef CUBEFS_FS_FUSE_RAW_H
#define CUBEFS_FS_FUSE_RAW_H

#include <linux/ioctl.h>
#include <stdint.h>

#define CUBE_FOPEN_DIRECT_IO   (1u << 0)
#define CUBE_FOPEN_KEEP_CACHE  (1u << 1)
#define CUBE_FOPEN_STREAM      (1u << 4) /* Linux 5.1: no position; a waiting read does not block a write */
#define CUBE_FOPEN_NOFLUSH     (1u << 5) /* Linux 5.16: a close of it is not told */
#define CUBE_FOPEN_PASSTHROUGH (1u << 7) /* Linux 6.9: data goes to the file behind, by its backing_id */

struct cube_fuse_backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define CUBE_FUSE_BACKING_OPEN  _IOW(229, 1, struct cube_fuse_backing_map)
#define CUBE_FUSE_BACKING_CLOSE _IOW(229, 2, uint32_t)

struct cube_fuse_attr {
	uint64_t ino, size, blocks, atime, mtime, ctime;
	uint32_t atimensec, mtimensec, ctimensec;
	uint32_t mode, nlink, uid, gid, rdev, blksize, flags;
};

struct cube_fuse_time {
	int64_t sec;
	uint32_t nsec;
	int32_t reserved;
};

/* The answer to STATX (Linux 6.6), its fields as those of struct statx. */
struct cube_fuse_statx_out {
	uint64_t attr_valid;
	uint32_t attr_valid_nsec, out_flags;
	uint64_t spare[2];
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, spare0;
	uint64_t ino, size, blocks, attributes_mask;
	struct cube_fuse_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t spare2[14];
};

struct cube_fuse_entry_out {
	uint64_t nodeid, generation, entry_valid, attr_valid;
	uint32_t entry_valid_nsec, attr_valid_nsec;
	struct cube_fuse_attr attr;
};

struct cube_fuse_open_out {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
};

#endif
