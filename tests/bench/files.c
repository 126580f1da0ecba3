/* SPDX-License-Identifier: Apache-2.0 */
/* Work on many small files, in one process.
 *
 *     bench-files WHAT DIR COUNT     WHAT: create, stat, read, unlink: each file of DIR once; prints microseconds */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/sample.h"

#define FILES_SIZE 1000

static char files_text[FILES_SIZE];

static int files_create(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, files_text, sizeof(files_text));

	return fd >= 0 && close(fd) == 0 && n == FILES_SIZE ? 0 : -1;
}

static int files_stat(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && st.st_size == FILES_SIZE ? 0 : -1;
}

static int files_read(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, files_text, sizeof(files_text));

	return fd >= 0 && close(fd) == 0 && n == FILES_SIZE ? 0 : -1;
}

static const struct {
	const char *name;
	int (*fn)(const char *name);
} files_kinds[] = {
	{"create", files_create},
	{"stat", files_stat},
	{"read", files_read},
	{"unlink", unlink},
};

static int files_run(int (*fn)(const char *name), unsigned count)
{
	uint64_t start = sample_now();
	char name[32];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "small-%u", i);
		if (fn(name) < 0) {
			(void)fprintf(stderr, "%s: %s\n", name, strerror(errno));
			return 1;
		}
	}
	(void)printf("%.0f\n", (double)(sample_now() - start) / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	memset(files_text, 'x', sizeof(files_text));
	for (size_t i = 0; argc == 4 && i < sizeof(files_kinds) / sizeof(*files_kinds); i++)
		if (strcmp(argv[1], files_kinds[i].name) == 0)
			return chdir(argv[2]) < 0
				       ? 1
				       : files_run(files_kinds[i].fn, (unsigned)strtoul(argv[3], NULL, 10));
	(void)fprintf(stderr, "usage: bench-files create|stat|read|unlink DIR COUNT\n");
	return 2;
}
