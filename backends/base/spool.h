/* SPDX-License-Identifier: Apache-2.0 */
/* A job's output on disk.
 *
 * Two files. `out` holds the bytes of both streams in the order in which they came, byte n of the
 * output at offset n of the file. `order` (absent when both streams share one pipe) says which bytes
 * are whose: one 16 byte little-endian record for each run of bytes of one stream,
 *
 *     uint64 start      offset in `out` at which the run begins; the top bit is set for stderr
 *     uint64 before     bytes of the same stream before this run
 *
 * so records alternate between the streams, and both directions are a binary search.
 *
 * The limit. Once more than `limit` bytes came, the middle is given back to the disk as a hole
 * (FALLOC_FL_PUNCH_HOLE): the first limit/2 bytes and at least the last limit/2 stay. Who writes the
 * file punches lazily and block-wise; what lies in the hole reads as zeros and must not be shown: readers
 * go through the functions below. `output` at total T > limit is seen as
 *
 *     [0, limit/2)  marker line  [T - limit/2, T)
 *
 * where the marker has CUBE_SPOOL_MARKER bytes whatever its number, which is that of the missing bytes.
 *
 * `stdout` and `stderr` follow from that: of each stream, those of its bytes that lie in the dropped middle
 * of the output are missing, and one marker stands in their place, with their number. A stream that has no
 * byte there is whole and has no marker.
 *
 * A view is valid as long as its tail is on the disk: up to 1 MiB of further output is no trouble; who keeps
 * one longer has the writer pass its T - limit/2 as @keep_from, or takes a new one. Files of a spool that are
 * not as described (the index is in reach of the sandbox) give -EIO, never bytes from elsewhere. */
#ifndef CUBEFS_BACKENDS_BASE_SPOOL_H
#define CUBEFS_BACKENDS_BASE_SPOOL_H

#include <stdint.h>
#include <sys/types.h>

#define CUBE_SPOOL_STDERR (UINT64_C(1) << 63)
#define CUBE_SPOOL_RECORD 16
#define CUBE_SPOOL_MARKER 64 /* "\n[cubefs: 00000000000000001234 bytes are missing at this place]\n" */

enum cube_stream { CUBE_STREAM_OUTPUT, CUBE_STREAM_STDOUT, CUBE_STREAM_STDERR };

/* One job's output as it was at some moment: everything that reading needs. Plain data. */
struct cube_spool_view {
	int out_fd;
	int order_fd;   /* -1: merged: stdout is all of it, stderr nothing */
	uint64_t total; /* bytes of both */
	uint64_t err_total;
	uint64_t limit;
};

/* How many bytes a plain reader of @stream sees. Where the index cannot be read: its true number of bytes. */
uint64_t cube_spool_size(const struct cube_spool_view *v, enum cube_stream stream);

/* Plain read: what `pread` of the file as seen would give. Bytes read, 0 at the end, -errno. */
ssize_t cube_spool_pread(const struct cube_spool_view *v, enum cube_stream stream, void *data, size_t len,
			 uint64_t offset);

/* Reading along, for channels: *pos is the reader's place in the stream's true bytes (starts at 0). A
 * reader that lags behind the hole gets the marker once, in its place, and goes on behind it; @len
 * must be at least CUBE_SPOOL_MARKER. 0: nothing there yet. */
ssize_t cube_spool_follow(const struct cube_spool_view *v, enum cube_stream stream, void *data, size_t len,
			  uint64_t *pos);

/* Bytes that are missing from the view. */
uint64_t cube_spool_dropped(const struct cube_spool_view *v);

/* For who writes, before the bytes: append to @order_fd that bytes of stderr (@err) or stdout follow at
 * offset @total,
 * @stream_total being those of the same stream before. *last (-1 at first) is the stream of the latest
 * record; where that is the same one nothing is written. 0 or -errno (then nothing was noted, and repeating
 * is right). */
int cube_spool_note(int order_fd, int *last, int err, uint64_t total, uint64_t stream_total);

/* For who writes: give back what the limit does not keep, when at least 1 MiB can be; 1 MiB above the tail
 * stays for readers whose view is a moment old. *punched (0 at first) is the end of the hole so far.
 * @keep_from: nothing at or above this offset (UINT64_MAX: by the limit alone). Silent where the file system
 * has no holes: then all stays. */
void cube_spool_punch(int out_fd, uint64_t total, uint64_t limit, uint64_t keep_from, uint64_t *punched);

#endif
