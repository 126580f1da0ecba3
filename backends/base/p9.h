/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of 9P: 9P2000.L, 9P2000.u and 9P2000, between bytes and structs. For both ends.
 *
 * A message is size[4] type[1] tag[2] and a body; all numbers little-endian, the size counts itself. Nothing is
 * allocated to decode one: strings and data point into the bytes that were given, and are not NUL ended. Every
 * field is checked against the end of the message; bytes behind the last field are an error. */
#ifndef CUBEFS_BACKENDS_BASE_P9_H
#define CUBEFS_BACKENDS_BASE_P9_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/buf.h"

#define CUBE_P9_NOTAG 0xffffu
#define CUBE_P9_NOFID UINT32_C(0xffffffff)
#define CUBE_P9_NOUID UINT32_C(0xffffffff) /* n_uname: none */

#define CUBE_P9_HEAD      7  /* size, type, tag */
#define CUBE_P9_DATA_HEAD 11 /* and the count in front of data: Rread, Rreaddir */
#define CUBE_P9_IO_HEAD   24 /* what a peer sets aside of msize for the head of Tread, Twrite, Treaddir */
#define CUBE_P9_WALK      16 /* names in one walk */

enum cube_p9_dialect {
	CUBE_P9_2000 = 1,
	CUBE_P9_2000U = 2,
	CUBE_P9_2000L = 4,
};

enum cube_p9_type {
	CUBE_P9_RLERROR = 7,
	CUBE_P9_TSTATFS = 8,
	CUBE_P9_RSTATFS,
	CUBE_P9_TLOPEN = 12,
	CUBE_P9_RLOPEN,
	CUBE_P9_TLCREATE = 14,
	CUBE_P9_RLCREATE,
	CUBE_P9_TSYMLINK = 16,
	CUBE_P9_RSYMLINK,
	CUBE_P9_TMKNOD = 18,
	CUBE_P9_RMKNOD,
	CUBE_P9_TRENAME = 20,
	CUBE_P9_RRENAME,
	CUBE_P9_TREADLINK = 22,
	CUBE_P9_RREADLINK,
	CUBE_P9_TGETATTR = 24,
	CUBE_P9_RGETATTR,
	CUBE_P9_TSETATTR = 26,
	CUBE_P9_RSETATTR,
	CUBE_P9_TXATTRWALK = 30,
	CUBE_P9_RXATTRWALK,
	CUBE_P9_TXATTRCREATE = 32,
	CUBE_P9_RXATTRCREATE,
	CUBE_P9_TREADDIR = 40,
	CUBE_P9_RREADDIR,
	CUBE_P9_TFSYNC = 50,
	CUBE_P9_RFSYNC,
	CUBE_P9_TLOCK = 52,
	CUBE_P9_RLOCK,
	CUBE_P9_TGETLOCK = 54,
	CUBE_P9_RGETLOCK,
	CUBE_P9_TLINK = 70,
	CUBE_P9_RLINK,
	CUBE_P9_TMKDIR = 72,
	CUBE_P9_RMKDIR,
	CUBE_P9_TRENAMEAT = 74,
	CUBE_P9_RRENAMEAT,
	CUBE_P9_TUNLINKAT = 76,
	CUBE_P9_RUNLINKAT,
	CUBE_P9_TVERSION = 100,
	CUBE_P9_RVERSION,
	CUBE_P9_TAUTH = 102,
	CUBE_P9_RAUTH,
	CUBE_P9_TATTACH = 104,
	CUBE_P9_RATTACH,
	CUBE_P9_RERROR = 107,
	CUBE_P9_TFLUSH = 108,
	CUBE_P9_RFLUSH,
	CUBE_P9_TWALK = 110,
	CUBE_P9_RWALK,
	CUBE_P9_TOPEN = 112,
	CUBE_P9_ROPEN,
	CUBE_P9_TCREATE = 114,
	CUBE_P9_RCREATE,
	CUBE_P9_TREAD = 116,
	CUBE_P9_RREAD,
	CUBE_P9_TWRITE = 118,
	CUBE_P9_RWRITE,
	CUBE_P9_TCLUNK = 120,
	CUBE_P9_RCLUNK,
	CUBE_P9_TREMOVE = 122,
	CUBE_P9_RREMOVE,
	CUBE_P9_TSTAT = 124,
	CUBE_P9_RSTAT,
	CUBE_P9_TWSTAT = 126,
	CUBE_P9_RWSTAT,
	CUBE_P9_TYPES /* one behind the last */
};

/* qid.type */
#define CUBE_P9_QTDIR     0x80
#define CUBE_P9_QTAPPEND  0x40
#define CUBE_P9_QTEXCL    0x20
#define CUBE_P9_QTAUTH    0x08
#define CUBE_P9_QTTMP     0x04
#define CUBE_P9_QTSYMLINK 0x02

/* Tlopen, Tlcreate: the protocol's own numbers, the same on every machine */
#define CUBE_P9_OPEN_ACCMODE   03u
#define CUBE_P9_OPEN_CREATE    0100u
#define CUBE_P9_OPEN_EXCL      0200u
#define CUBE_P9_OPEN_TRUNC     01000u
#define CUBE_P9_OPEN_APPEND    02000u
#define CUBE_P9_OPEN_NONBLOCK  04000u
#define CUBE_P9_OPEN_DSYNC     010000u
#define CUBE_P9_OPEN_DIRECT    040000u
#define CUBE_P9_OPEN_DIRECTORY 0200000u
#define CUBE_P9_OPEN_NOFOLLOW  0400000u
#define CUBE_P9_OPEN_NOATIME   01000000u
#define CUBE_P9_OPEN_SYNC      04000000u

/* Topen, Tcreate (older dialects) */
#define CUBE_P9_OREAD   0u
#define CUBE_P9_OWRITE  1u
#define CUBE_P9_ORDWR   2u
#define CUBE_P9_OEXEC   3u
#define CUBE_P9_OTRUNC  0x10u
#define CUBE_P9_ORCLOSE 0x40u

/* mode of stat, perm of Tcreate (older dialects); from SYMLINK on .u alone */
#define CUBE_P9_DMDIR       0x80000000u
#define CUBE_P9_DMAPPEND    0x40000000u
#define CUBE_P9_DMEXCL      0x20000000u
#define CUBE_P9_DMTMP       0x04000000u
#define CUBE_P9_DMSYMLINK   0x02000000u
#define CUBE_P9_DMLINK      0x01000000u
#define CUBE_P9_DMDEVICE    0x00800000u
#define CUBE_P9_DMNAMEDPIPE 0x00200000u
#define CUBE_P9_DMSOCKET    0x00100000u
#define CUBE_P9_DMSETUID    0x00080000u
#define CUBE_P9_DMSETGID    0x00040000u
#define CUBE_P9_DMSETVTX    0x00010000u

/* Tgetattr's mask, Rgetattr's valid */
#define CUBE_P9_GETATTR_BASIC 0x7ffu
#define CUBE_P9_GETATTR_ALL   0x3fffu

/* Tsetattr's valid */
#define CUBE_P9_SETATTR_MODE      1u
#define CUBE_P9_SETATTR_UID       2u
#define CUBE_P9_SETATTR_GID       4u
#define CUBE_P9_SETATTR_SIZE      8u
#define CUBE_P9_SETATTR_ATIME     0x10u
#define CUBE_P9_SETATTR_MTIME     0x20u
#define CUBE_P9_SETATTR_CTIME     0x40u
#define CUBE_P9_SETATTR_ATIME_SET 0x80u
#define CUBE_P9_SETATTR_MTIME_SET 0x100u
#define CUBE_P9_SETATTR_KNOWN     0x1ffu

#define CUBE_P9_AT_REMOVEDIR 0x200u /* Tunlinkat's flags */

#define CUBE_P9_XATTR_CREATE  1u
#define CUBE_P9_XATTR_REPLACE 2u

enum cube_p9_lock_type { CUBE_P9_LOCK_READ, CUBE_P9_LOCK_WRITE, CUBE_P9_LOCK_UNLOCK };
enum cube_p9_lock_status {
	CUBE_P9_LOCK_SUCCESS,
	CUBE_P9_LOCK_BLOCKED,
	CUBE_P9_LOCK_ERROR,
	CUBE_P9_LOCK_GRACE
};
#define CUBE_P9_LOCK_FLAG_BLOCK   1u
#define CUBE_P9_LOCK_FLAG_RECLAIM 2u

struct cube_p9_str {
	const char *s; /* not NUL ended, may have NULs; NULL with len 0: empty */
	uint16_t len;
};

struct cube_p9_qid {
	uint8_t type;
	uint32_t version;
	uint64_t path;
};

/* Rgetattr, Tsetattr (of which only what it has) */
struct cube_p9_attr {
	uint32_t mode, uid, gid;
	uint64_t nlink, rdev, size, blksize, blocks;
	uint64_t atime_s, atime_ns, mtime_s, mtime_ns, ctime_s, ctime_ns, btime_s, btime_ns;
	uint64_t gen, data_version;
};

struct cube_p9_statfs {
	uint32_t type, bsize;
	uint64_t blocks, bfree, bavail, files, ffree, fsid;
	uint32_t namelen;
};

struct cube_p9_lock {
	uint8_t type;
	uint32_t flags;
	uint64_t start, length; /* length 0: to the end */
	uint32_t proc;
	struct cube_p9_str client;
};

/* Rstat, Twstat, a directory's content: older dialects. In Twstat all ones, or an empty string: leave it. */
struct cube_p9_stat {
	uint16_t type;
	uint32_t dev;
	struct cube_p9_qid qid;
	uint32_t mode, atime, mtime;
	uint64_t length;
	struct cube_p9_str name, uid, gid, muid;
	struct cube_p9_str extension; /* from here on .u alone */
	uint32_t n_uid, n_gid, n_muid;
};

/* Any message. Which members it has is in the table of p9.c; the others are 0. */
struct cube_p9_msg {
	uint8_t type;
	uint16_t tag;
	uint16_t oldtag;
	uint32_t fid;    /* also dfid, olddirfid, dirfid */
	uint32_t newfid; /* also afid, newdirfid; Tlink: the file */
	uint32_t msize, iounit, error, count, flags, mode, major, minor, gid, uid, datasync;
	uint64_t offset, mask, size; /* mask: request_mask, valid of both */
	uint8_t open_mode, status;
	struct cube_p9_str name;   /* also version, ename, target of Rreadlink, uname */
	struct cube_p9_str second; /* also target, newname, aname, extension */
	struct cube_p9_qid qid;
	uint16_t n_names, n_qids;
	struct cube_p9_str names[CUBE_P9_WALK];
	struct cube_p9_qid qids[CUBE_P9_WALK];
	const void *data; /* count bytes */
	struct cube_p9_attr attr;
	struct cube_p9_statfs statfs;
	struct cube_p9_lock lock;
	struct cube_p9_stat stat;
};

/* The size in the first four bytes of a message. */
uint32_t cube_p9_size(const void *head);

/* Is there such a message in this dialect? Tversion and Rversion are in all. */
bool cube_p9_known(unsigned type, enum cube_p9_dialect d);
/* "Tread"; "?" for what no dialect has. */
const char *cube_p9_name(unsigned type);

/* @len bytes that are one message. 0; -EBADMSG: the size is not @len, or the body is not what the type wants;
 * -EOPNOTSUPP: no such message in this dialect. With the latter two type and tag are set if @len has them. */
int cube_p9_decode(const void *bytes, size_t len, enum cube_p9_dialect d, struct cube_p9_msg *ret);

/* Adds the message to @out: 0, or the buffer's error (-EMSGSIZE beyond its ceiling), -EOPNOTSUPP (no such
 * message in this dialect), and then nothing is added. */
int cube_p9_encode(const struct cube_p9_msg *m, enum cube_p9_dialect d, struct cube_buf *out);
/* The head of a message that ends in @count bytes of data and has nothing else (Rread, Rreaddir): for who has put
 * the data in place. Writes CUBE_P9_DATA_HEAD bytes. */
void cube_p9_data_head(unsigned type, uint16_t tag, uint32_t count, void *at);

/* ---- what is in the data of messages ---- */

struct cube_p9_dirent {
	struct cube_p9_qid qid;
	uint64_t offset; /* of what comes behind it */
	uint8_t type;    /* DT_* */
	struct cube_p9_str name;
};
/* Rreaddir. Adds one, or gives the buffer's error. */
int cube_p9_dirent_add(struct cube_buf *out, const struct cube_p9_dirent *e);
/* How many bytes of @data it has; -EBADMSG. */
ssize_t cube_p9_dirent_get(const void *data, size_t len, struct cube_p9_dirent *ret);

/* One stat record, in a directory's content or behind n[2]. */
int cube_p9_stat_add(struct cube_buf *out, enum cube_p9_dialect d, const struct cube_p9_stat *st);
ssize_t cube_p9_stat_get(const void *data, size_t len, enum cube_p9_dialect d, struct cube_p9_stat *ret);

#endif
