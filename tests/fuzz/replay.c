/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files and over the files of folders, so that a corpus is a regression test without
 * libFuzzer. Running none is a failure. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define REPLAY_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1, or a negative errno. */
static int replay_file(int dirfd, const char *name)
{
	struct cube_buf b = CUBE_BUF(REPLAY_MAX);
	uint8_t *exact; /* to the byte, so that a sanitizer sees a read behind the end */
	int r = cube_file_read(dirfd, name, &b);

	if (r < 0) {
		cube_buf_done(&b);
		return r;
	}
	exact = cube_memdup(b.data, b.len);
	r = exact != NULL ? 1 : -ENOMEM;
	if (exact != NULL)
		(void)LLVMFuzzerTestOneInput(exact, b.len);
	cube_free(exact);
	cube_buf_done(&b);
	return r;
}

/* How many were run, or a negative errno. */
static int replay_folder(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	int count = 0, r = 1;

	if (dir == NULL)
		return -errno;
	while (r > 0 && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		r = replay_file(dirfd(dir), e->d_name);
		count++;
	}
	(void)closedir(dir);
	return r < 0 ? r : count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		int r = stat(argv[i], &st) < 0 ? -errno : 0;

		if (r == 0)
			r = S_ISDIR(st.st_mode) ? replay_folder(argv[i]) : replay_file(AT_FDCWD, argv[i]);
		if (r < 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i], cube_errno_text(r));
			return 1;
		}
		total += r;
	}
	(void)printf("%d inputs\n", total);
	return total > 0 ? 0 : 1;
}
