/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that copy file by file: plain directories, copied by cp(1). Where the file system shares blocks, cp has
 * it share them. */
#include "backends/local/store.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_TEXT 8192 /* bytes of cp's messages that are kept */

static int files_make(int sets, const char *name, struct cube_err *err)
{
	return mkdirat(sets, name, 0700) < 0 ? cube_fail_errno(err, "cannot make the directory %s", name) : 0;
}

static int files_remove(int sets, const char *name, struct cube_err *err)
{
	int rc = cube_file_remove_tree(sets, name);

	return rc < 0 ? cube_fail(err, rc, "cannot remove the files in %s: %s", name, cube_errno_text(rc))
		      : 0;
}

/* cp says in words what went wrong. */
static int files_reason(const struct cube_buf *text)
{
	static const struct {
		const char *word;
		int code;
	} reasons[] = {
		{"No space left", -ENOSPC},
		{"Disk quota exceeded", -EDQUOT},
		{"File name too long", -ENAMETOOLONG},
	};

	for (size_t i = 0; i < CUBE_COUNT(reasons); i++)
		if (strstr(cube_buf_str(text), reasons[i].word))
			return reasons[i].code;
	return -EIO;
}

/* A daemon that is killed leaves nobody who goes on copying while the next one sweeps. The thread that started it waits
 * for it, so that it dies with the process and not before. */
static int files_die_too(void *ctx)
{
	(void)ctx;
	return syscall(SYS_prctl, PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L) < 0 ? -errno : 0;
}

static int files_copy(int sets, const char *from, const char *to, uint32_t limit_ms,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(FILES_TEXT);
	const char *const argv[] = {"cp", "-a", "-T", "--reflink=auto", "--sparse=auto", "--",
				    from, to,   NULL};
	const struct cube_spawn s = {.argv = argv,
				     .cwd = sets,
				     .in = -1,
				     .out = -1,
				     .text = &text,
				     .timeout_ms = limit_ms,
				     .setup = files_die_too};
	char why[300];
	int status = 0, rc;

	if (faccessat(sets, from, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return cube_fail_errno(err, "cannot copy the layers of %s", from);
	rc = cube_spawn_run(&s, cancel, &status, err);
	if (rc == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		rc = cube_fail(err, files_reason(&text), "cannot copy the layers of %s: %s", from, why);
	}
	cube_buf_done(&text);
	if (rc < 0)
		(void)cube_file_remove_tree(sets, to);
	return rc;
}

const struct cube_local_store_ops cube_local_store_copies = {
	.name = "copies",
	.make = files_make,
	.copy = files_copy,
	.remove = files_remove,
};

const struct cube_local_store_ops cube_local_store_reflinks = {
	.name = "reflinks",
	.make = files_make,
	.copy = files_copy,
	.remove = files_remove,
};
