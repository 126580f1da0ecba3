/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that walks the mount. */
#include "tests/unit/files/walker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/macros.h"

/* The next name; "" at the end, and then whether there is a slash, which wants a directory. */
static bool walker_take(struct walker *w, char name[PATH_MAX])
{
	bool slash = w->rest[0] == '/';
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	(void)snprintf(name, PATH_MAX, "%.*s", (int)len, from);
	memmove(w->rest, from + len, strlen(from + len) + 1);
	return slash;
}

/* Its text comes in front of the rest. */
static int walker_link(struct walker *w, uint64_t id)
{
	char text[PATH_MAX];
	size_t rest = strlen(w->rest) + 1;
	ssize_t n = cube_files_readlink(w->s->space, id, text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (++w->links > 40)
		return -ELOOP;
	assert_true(text[0] != '/'); /* from the host's root */
	assert_true((size_t)n + 1 + rest < sizeof(w->rest));
	/* what follows begins with a slash, if there is something */
	memmove(w->rest + n, w->rest, rest);
	memcpy(w->rest, text, (size_t)n);
	return 0;
}

int walker_run(struct walker *w, const char *path, struct cube_files_entry *e)
{
	char name[PATH_MAX];
	int r;

	(void)snprintf(w->rest, sizeof(w->rest), "%s", path);
	*e = (struct cube_files_entry){.id = w->at[w->depth], .st = {.st_mode = S_IFDIR}};
	for (;;) {
		bool slash = walker_take(w, name);

		if (*name == '\0')
			return slash && !S_ISDIR(e->st.st_mode) ? -ENOTDIR : 0;
		if (!S_ISDIR(e->st.st_mode))
			return -ENOTDIR;
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			if (w->depth == 0)
				fail_msg("%s: above files/", path);
			e->id = w->at[--w->depth];
			continue;
		}
		r = cube_files_lookup(w->s->space, w->at[w->depth], name, e);
		if (r == 0 && S_ISLNK(e->st.st_mode)) {
			r = walker_link(w, e->id);
			e->id = w->at[w->depth];
			e->st.st_mode = S_IFDIR;
		} else if (r == 0 && S_ISDIR(e->st.st_mode)) {
			assert_true(w->depth + 1 < CUBE_COUNT(w->at));
			w->at[++w->depth] = e->id;
		}
		if (r < 0)
			return r;
	}
}
