/* SPDX-License-Identifier: Apache-2.0 */
/* A range of ids that nobody has. A subordinate range that overlapped ours would let its owner, in a namespace of
 * his own, be the users of the sandboxes. */
#include "backends/local/idrange.h"

#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IDRANGE_FILE     "uid_base"
#define IDRANGE_FILE_MAX (1u << 24)
#define IDRANGE_LAST     (UINT32_MAX - 2 * CUBE_LOCAL_IDS) /* what is above is for nobody */

/* Which fields of a line name numbers. */
static const struct {
	const char *file;
	unsigned first; /* field, from 0 */
	unsigned count; /* field; 0: one number */
} idrange_files[] = {
	{"subuid", 1, 2},
	{"subgid", 1, 2},
	{"passwd", 2, 0},
	{"group", 2, 0},
};

/* The number in field @n of a line of @len bytes. */
static bool idrange_field(const char *line, size_t len, unsigned n, uint64_t *ret)
{
	const char *end = line + len;
	char digits[24];
	size_t size;

	for (; n > 0; n--) {
		line = memchr(line, ':', (size_t)(end - line));
		if (line == NULL)
			return false;
		line++;
	}
	size = strcspn(line, ":\n");
	if (line + size > end || size == 0 || size >= sizeof(digits))
		return false;
	memcpy(digits, line, size);
	digits[size] = '\0';
	return cube_num_u64(digits, UINT32_MAX, ret) == 0;
}

struct idrange_search {
	uint64_t first, next; /* what is looked for; behind the last that is in its way */
	const char *path;
	char who[128];
};

static void idrange_line(struct idrange_search *s, size_t file, const char *line, size_t len)
{
	uint64_t at, count = 1;

	if (!idrange_field(line, len, idrange_files[file].first, &at) ||
	    (idrange_files[file].count > 0 && !idrange_field(line, len, idrange_files[file].count, &count)))
		return;
	if (count == 0 || at >= s->first + CUBE_LOCAL_IDS || at + count <= s->first || at + count <= s->next)
		return;
	s->next = at + count;
	(void)snprintf(s->who, sizeof(s->who), "%s/%s: %.*s", s->path, idrange_files[file].file,
		       (int)(len < 80 ? len : 80), line);
}

static void idrange_file(struct idrange_search *s, size_t file)
{
	struct cube_buf text = CUBE_BUF(IDRANGE_FILE_MAX);
	char path[PATH_MAX];
	const char *end;

	(void)snprintf(path, sizeof(path), "%s/%s", s->path, idrange_files[file].file);
	if (cube_file_read(AT_FDCWD, path, &text) == 0) {
		for (const char *line = cube_buf_str(&text); *line != '\0';
		     line = *end == '\0' ? end : end + 1) {
			end = line + strcspn(line, "\n");
			idrange_line(s, file, line, (size_t)(end - line));
		}
	}
	cube_buf_done(&text);
}

bool cube_local_idrange_taken(const char *etc, uint32_t first, uint32_t *ret_next, char ret_who[128])
{
	struct idrange_search s = {.first = first, .path = etc};

	for (size_t i = 0; i < CUBE_COUNT(idrange_files); i++)
		idrange_file(&s, i);
	if (s.next == 0)
		return false;
	if (ret_next != NULL)
		*ret_next = s.next < UINT32_MAX ? (uint32_t)s.next : UINT32_MAX;
	if (ret_who != NULL)
		memcpy(ret_who, s.who, sizeof(s.who));
	return true;
}

/* ---- kept ---- */

static int idrange_read(int dir, uint32_t *ret)
{
	struct cube_buf text = CUBE_BUF(64);
	uint64_t n = 0;
	int rc = cube_file_read(dir, IDRANGE_FILE, &text);

	if (rc == 0 && !idrange_field(cube_buf_str(&text), text.len, 0, &n))
		rc = -EINVAL;
	if (rc == 0 && (n < 1000 || n > UINT32_MAX - CUBE_LOCAL_IDS))
		rc = -EINVAL;
	cube_buf_done(&text);
	if (rc == 0)
		*ret = (uint32_t)n;
	return rc;
}

static int idrange_choose(int dir, const char *etc, uint32_t *ret, struct cube_err *err)
{
	uint32_t first = CUBE_LOCAL_IDS_FROM, next;
	char text[16];
	int n, rc;

	/* Made by a daemon that knew one range only: its files have these owners. */
	if (faccessat(dir, "cubes", F_OK, 0) < 0)
		while (cube_local_idrange_taken(etc, first, &next, NULL)) {
			first = next;
			if (first > IDRANGE_LAST)
				return cube_fail(
					err, -ENOSPC,
					"no %u ids are free by %s/subuid, subgid, passwd and group: free "
					"some, or name a range with uid_base in the configuration",
					CUBE_LOCAL_IDS, etc);
		}
	n = snprintf(text, sizeof(text), "%u\n", first);
	rc = cube_file_replace(dir, IDRANGE_FILE, text, (size_t)n, 0600);
	if (rc < 0)
		return cube_fail(err, rc, "the range of ids cannot be written down: %s", cube_errno_text(rc));
	*ret = first;
	return 0;
}

int cube_local_idrange(const char *state_dir, const char *etc, uint32_t *ret_first, struct cube_err *err)
{
	cube_auto_fd dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (dir < 0)
		return cube_fail_errno(err, "%s", state_dir);
	rc = idrange_read(dir, ret_first);
	if (rc == -ENOENT)
		return idrange_choose(dir, etc, ret_first, err);
	return rc < 0 ? cube_fail(err, rc,
				  "%s/%s does not hold a number of which %u follow: write that of the "
				  "sandboxes' "
				  "files there",
				  state_dir, IDRANGE_FILE, CUBE_LOCAL_IDS)
		      : 0;
}
