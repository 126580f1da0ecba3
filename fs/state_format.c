/* SPDX-License-Identifier: Apache-2.0 */
/* Which cubefs can read what is in a state directory. */
#include "fs/state_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "ctl/version.h"

#define FORMAT_NAME "format"
#define FORMAT_MAX  64

static int format_read(const char *path, uint64_t *ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(FORMAT_MAX);
	cube_auto_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : cube_file_read(dir, FORMAT_NAME, &text);
	char line[FORMAT_MAX + 1];

	*ret = 1;
	(void)snprintf(line, sizeof(line), "%s", r == 0 ? cube_buf_str(&text) : "");
	line[strcspn(line, "\n")] = '\0';
	cube_buf_done(&text);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && r != -EMSGSIZE)
		return cube_fail(err, r, "%s/" FORMAT_NAME ": %s", path, cube_errno_text(r));
	if (cube_num_u64(line, UINT32_MAX, ret) < 0 || *ret == 0)
		return cube_fail(err, -EPROTO,
				 "%s/" FORMAT_NAME
				 " has no number that says which cubefs can read the state: "
				 "write 1 into it if no later one than cubefs " CUBEFS_VERSION " has used it",
				 path);
	return 0;
}

int cube_state_format_check(const char *path, struct cube_err *err)
{
	uint64_t number;
	int r = format_read(path, &number, err);

	if (r == 0 && number > CUBE_STATE_FORMAT)
		r = cube_fail(err, -EPROTO,
			      "what is in %s was written by a later cubefs (format %" PRIu64
			      "; cubefs " CUBEFS_VERSION
			      " reads up to %d): use that one, or another directory with --state",
			      path, number, CUBE_STATE_FORMAT);
	return r;
}

int cube_state_format_mark(const char *path, struct cube_err *err)
{
	cube_auto_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char line[32];
	int n = snprintf(line, sizeof(line), "%d\n", CUBE_STATE_FORMAT);
	int r = dir < 0 ? -errno : cube_file_replace(dir, FORMAT_NAME, line, (size_t)n, 0600);

	return r < 0 ? cube_fail(err, r, "%s/" FORMAT_NAME ": %s", path, cube_errno_text(r)) : 0;
}
