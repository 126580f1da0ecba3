/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations on one file, held against a model in memory; on both sides of a file system at once.
 *
 *     posix-churn [-s SEED] [-n COUNT] [-i DIRECTORY] DIRECTORY
 *
 * -i: the same directory as the other side has it; then each operation is done on either. What is found wrong is told
 * with the latest operations and the seed, which makes the same run again. Ends with 0 if nothing was. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHURN_MAX   (256 * 1024)
#define CHURN_PAGE  4096
#define CHURN_SIDES 2
#define CHURN_TOLD  24 /* operations before a failure */

struct churn_op {
	const char *name;
	int side;
	off_t at, len;
};

static struct {
	uint64_t random;
	unsigned long seed, done, waits, unmapped;
	const char *dirs[CHURN_SIDES];
	int fds[CHURN_SIDES], sides;
	unsigned file; /* the number in its name */
	unsigned char model[CHURN_MAX];
	off_t size;
	struct churn_op told[CHURN_TOLD];
	unsigned char buf[CHURN_MAX];
} churn = {.seed = 1};

static uint64_t churn_random(uint64_t below)
{
	uint64_t z = churn.random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % below;
}

__attribute__((format(printf, 1, 2), noreturn)) static void churn_fail(const char *format, ...)
{
	const int error = errno;
	va_list args;

	for (unsigned long i = churn.done >= CHURN_TOLD ? churn.done - CHURN_TOLD + 1 : 0; i <= churn.done;
	     i++) {
		const struct churn_op *op = &churn.told[i % CHURN_TOLD];

		(void)printf("  %lu %s side %d at %lld len %lld\n", i, op->name, op->side, (long long)op->at,
			     (long long)op->len);
	}
	(void)printf("seed %lu, operation %lu, size %lld: ", churn.seed, churn.done, (long long)churn.size);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf(" (%s)\n", strerrorname_np(error));
	(void)fflush(stdout);
	_exit(1);
}

static const char *churn_path(int side, unsigned file)
{
	static char paths[2][PATH_MAX];
	static unsigned last;
	char *path = paths[++last % 2];

	(void)snprintf(path, PATH_MAX, "%s/churn.%u", churn.dirs[side], file);
	return path;
}

static void churn_open(int side, int flags)
{
	churn.fds[side] = open(churn_path(side, churn.file), O_RDWR | O_CLOEXEC | flags, 0666);
	if (churn.fds[side] < 0)
		churn_fail("open");
}

/* What the other side did may be seen a moment later in the size, never in the data. */
static void churn_settle(int side)
{
	struct stat st = {.st_size = -1};

	for (int i = 0; i < 1000; i++) {
		if (fstat(churn.fds[side], &st) < 0)
			churn_fail("fstat");
		if (st.st_size == churn.size)
			return;
		churn.waits++;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
	}
	churn_fail("the size is %lld", (long long)st.st_size);
}

/* ---- the operations; each has a place and a length, both below CHURN_MAX together ---- */

static void churn_fill(off_t len)
{
	const uint64_t pattern = churn_random(UINT64_MAX);

	for (off_t i = 0; i < len; i++)
		churn.buf[i] = (unsigned char)(pattern >> (i % 8 * 8)) ^ (unsigned char)(i >> 3);
}

static void churn_zero(off_t from, off_t to)
{
	if (to > from)
		memset(churn.model + from, 0, (size_t)(to - from));
}

/* The model grows; what is new is zero already. */
static void churn_grown(off_t size)
{
	if (size > churn.size)
		churn.size = size;
}

static void churn_write(const struct churn_op *op)
{
	churn_fill(op->len);
	if (pwrite(churn.fds[op->side], churn.buf, (size_t)op->len, op->at) != op->len)
		churn_fail("pwrite");
	memcpy(churn.model + op->at, churn.buf, (size_t)op->len);
	churn_grown(op->at + op->len);
}

static void churn_append(const struct churn_op *op)
{
	const off_t len = op->len < CHURN_MAX - churn.size ? op->len : CHURN_MAX - churn.size;
	int fd = open(churn_path(op->side, churn.file), O_WRONLY | O_APPEND | O_CLOEXEC);

	churn_fill(len);
	if (fd < 0 || write(fd, churn.buf, (size_t)len) != len || close(fd) < 0)
		churn_fail("to append");
	memcpy(churn.model + churn.size, churn.buf, (size_t)len);
	churn_grown(churn.size + len);
}

static void churn_compare(const unsigned char *got, off_t at, off_t len)
{
	if (memcmp(got, churn.model + at, (size_t)len) == 0)
		return;
	for (off_t i = 0; i < len; i++) {
		const off_t where = at + i;

		if (got[i] != churn.model[where])
			churn_fail("at %lld there is %#x, not %#x", (long long)where, got[i],
				   churn.model[where]);
	}
}

static off_t churn_there(const struct churn_op *op)
{
	const off_t left = churn.size - op->at;

	return left <= 0 ? 0 : left < op->len ? left : op->len;
}

static void churn_read(const struct churn_op *op)
{
	const off_t len = churn_there(op);

	if (pread(churn.fds[op->side], churn.buf, (size_t)op->len, op->at) != len)
		churn_fail("pread, not %lld bytes", (long long)len);
	churn_compare(churn.buf, op->at, len);
}

static void churn_read_all(const struct churn_op *op)
{
	const struct churn_op all = {.side = op->side, .len = CHURN_MAX};

	churn_read(&all);
}

static void churn_truncate(const struct churn_op *op)
{
	const off_t size = op->at;
	const int r = op->len % 2 == 0 ? ftruncate(churn.fds[op->side], size)
				       : truncate(churn_path(op->side, churn.file), size);

	if (r < 0)
		churn_fail("truncate");
	churn_zero(size, churn.size);
	churn.size = size;
}

/* What lies in the file of a place and length, mapped; NULL: nothing does, or it cannot be mapped here. */
static unsigned char *churn_map(const struct churn_op *op, int rights, off_t *ret_skip, off_t *ret_len)
{
	const off_t from = op->at / CHURN_PAGE * CHURN_PAGE, len = churn_there(op);
	void *m;

	if (len == 0)
		return NULL;
	*ret_skip = op->at - from;
	*ret_len = len;
	m = mmap(NULL, (size_t)(len + *ret_skip), rights, MAP_SHARED, churn.fds[op->side], from);
	if (m == MAP_FAILED && (errno != ENODEV || churn.sides > 1))
		churn_fail("mmap");
	churn.unmapped += m == MAP_FAILED;
	return m == MAP_FAILED ? NULL : m;
}

static void churn_map_write(const struct churn_op *op)
{
	off_t skip, len;
	unsigned char *m = churn_map(op, PROT_READ | PROT_WRITE, &skip, &len);

	if (m == NULL)
		return;
	churn_fill(len);
	memcpy(m + skip, churn.buf, (size_t)len);
	memcpy(churn.model + op->at, churn.buf, (size_t)len);
	if (op->len % 2 == 0 && msync(m, (size_t)(len + skip), MS_SYNC) < 0)
		churn_fail("msync");
	if (munmap(m, (size_t)(len + skip)) < 0)
		churn_fail("munmap");
}

static void churn_map_read(const struct churn_op *op)
{
	off_t skip, len;
	unsigned char *m = churn_map(op, PROT_READ, &skip, &len);

	if (m == NULL)
		return;
	churn_compare(m + skip, op->at, len);
	if (munmap(m, (size_t)(len + skip)) < 0)
		churn_fail("munmap");
}

static void churn_allocate(const struct churn_op *op)
{
	const bool keep = op->len % 2 == 0;

	if (fallocate(churn.fds[op->side], keep ? FALLOC_FL_KEEP_SIZE : 0, op->at, op->len) < 0)
		churn_fail("fallocate");
	if (!keep)
		churn_grown(op->at + op->len);
}

static void churn_clear(const struct churn_op *op, int mode)
{
	const off_t len = churn_there(op);

	if (fallocate(churn.fds[op->side], mode | FALLOC_FL_KEEP_SIZE, op->at, op->len) < 0)
		churn_fail("fallocate of a hole");
	churn_zero(op->at, op->at + len);
}

static void churn_punch(const struct churn_op *op)
{
	churn_clear(op, FALLOC_FL_PUNCH_HOLE);
}

static void churn_zero_range(const struct churn_op *op)
{
	churn_clear(op, FALLOC_FL_ZERO_RANGE);
}

/* A hole reads as zeros, and it begins and ends where data does. */
static void churn_holes(const struct churn_op *op)
{
	const int fd = churn.fds[op->side];
	off_t at = 0;

	while (at < churn.size) {
		off_t data = lseek(fd, at, SEEK_DATA);

		if (data < 0 && errno != ENXIO)
			churn_fail("SEEK_DATA");
		for (off_t i = at; i < (data < 0 ? churn.size : data); i++) {
			if (churn.model[i] != 0)
				churn_fail("a hole where data is, at %lld", (long long)i);
		}
		if (data < 0)
			return;
		at = lseek(fd, data, SEEK_HOLE);
		if (at <= data || at > churn.size)
			churn_fail("SEEK_HOLE from %lld: %lld", (long long)data, (long long)at);
	}
}

/* From the beginning of the file to the place. */
static void churn_copy(const struct churn_op *op)
{
	off_t in = 0, out = op->at;
	const off_t most = churn.size < op->at ? churn.size : op->at;
	const off_t wanted = op->len < most ? op->len : most;

	for (off_t left = wanted; left > 0;) {
		ssize_t n =
			copy_file_range(churn.fds[op->side], &in, churn.fds[op->side], &out, (size_t)left, 0);

		if (n <= 0)
			churn_fail("copy_file_range: %lld left", (long long)left);
		left -= n;
	}
	memcpy(churn.model + op->at, churn.model, (size_t)wanted);
	if (wanted > 0)
		churn_grown(op->at + wanted);
}

static void churn_reopen(const struct churn_op *op)
{
	if (close(churn.fds[op->side]) < 0)
		churn_fail("close");
	churn_open(op->side, 0);
}

static void churn_sync(const struct churn_op *op)
{
	if (op->len % 2 == 0 ? fsync(churn.fds[op->side]) : fdatasync(churn.fds[op->side]))
		churn_fail("fsync");
}

static void churn_rename(const struct churn_op *op)
{
	if (rename(churn_path(op->side, churn.file), churn_path(op->side, churn.file + 1)) < 0)
		churn_fail("rename");
	churn.file++;
	if (access(churn_path(op->side, churn.file), R_OK) < 0)
		churn_fail("access");
}

static const struct {
	const char *name;
	void (*run)(const struct churn_op *op);
	unsigned weight;
} churn_ops[] = {
	{"write", churn_write, 20},       {"append", churn_append, 4},
	{"read", churn_read, 20},         {"read all", churn_read_all, 3},
	{"truncate", churn_truncate, 6},  {"map write", churn_map_write, 10},
	{"map read", churn_map_read, 10}, {"allocate", churn_allocate, 4},
	{"punch", churn_punch, 5},        {"zero range", churn_zero_range, 4},
	{"holes", churn_holes, 4},        {"copy", churn_copy, 5},
	{"reopen", churn_reopen, 3},      {"sync", churn_sync, 1},
	{"rename", churn_rename, 2},
};

static void churn_step(void)
{
	struct churn_op *op = &churn.told[churn.done % CHURN_TOLD];
	uint64_t pick = churn_random(101);
	size_t i = 0;

	while (pick >= churn_ops[i].weight)
		pick -= churn_ops[i++].weight;
	op->name = churn_ops[i].name;
	op->side = (int)churn_random((uint64_t)churn.sides);
	op->at = (off_t)churn_random(CHURN_MAX - 1);
	op->len = 1 + (off_t)churn_random(churn_random(4) == 0 ? 65536 : 3000);
	if (op->at + op->len > CHURN_MAX)
		op->len = CHURN_MAX - op->at;
	churn_settle(op->side);
	churn_ops[i].run(op);
}

static bool churn_arguments(int argc, char **argv, unsigned long *ret_count)
{
	int option;

	churn.sides = 1;
	while ((option = getopt(argc, argv, "s:n:i:")) > 0) {
		if (option == 's')
			churn.seed = strtoul(optarg, NULL, 10);
		else if (option == 'n')
			*ret_count = strtoul(optarg, NULL, 10);
		else if (option == 'i')
			churn.dirs[churn.sides++] = optarg;
		else
			return false;
	}
	churn.dirs[0] = argv[optind];
	return argc == optind + 1 && churn.sides <= CHURN_SIDES && *ret_count > 0;
}

int main(int argc, char **argv)
{
	unsigned long count = 10000, weights = 0;

	for (size_t i = 0; i < sizeof(churn_ops) / sizeof(churn_ops[0]); i++)
		weights += churn_ops[i].weight;
	if (weights != 101 || !churn_arguments(argc, argv, &count)) {
		(void)fprintf(stderr, "usage: posix-churn [-s SEED] [-n COUNT] [-i DIRECTORY] DIRECTORY\n");
		return 2;
	}
	churn.random = churn.seed;
	for (int side = 0; side < churn.sides; side++)
		churn_open(side, side == 0 ? O_CREAT | O_EXCL : 0);
	for (churn.done = 0; churn.done < count; churn.done++)
		churn_step();
	if (unlink(churn_path(0, churn.file)) < 0)
		churn_fail("unlink");
	(void)printf("%lu operations, seed %lu, %d sides: as the model; %lu waits for a size, %lu mappings "
		     "refused\n",
		     churn.done, churn.seed, churn.sides, churn.waits, churn.unmapped);
	return 0;
}
