/* SPDX-License-Identifier: Apache-2.0 */
/* Link targets as shown: no link can lead astray.
 *
 * A kernel that meets a link in a mount reads its text and walks it itself: from the host's root if it is
 * absolute, else from the directory in which it found the link, and each ".." takes it to the parent
 * directory of where it stands *in the mount*. What it must never do is step above `files/`.
 *
 * Rule. Every text that is shown has the form
 *
 *     ".." k times, then names        k <= d, no ".." behind the first name
 *
 * (with "." and further slashes anywhere), where d is the depth of the link's directory below `files/`: 0 for
 * the root directory, counted in the node table, where a directory has a node for each path and moves only
 * when the caller renames it, so that it is the depth of the caller's dentry too, whatever is moved inside.
 *
 * Proof that such a text stays inside. By induction over the links that a walk follows: the walk of one
 * begins in its directory, at depth d (the kernel's own rule: a relative link starts where it was found). k
 * steps up end at depth d - k >= 0, in `files/` or below. Each name then leads to a directory one deeper, to
 * a file, which ends the walk, or to another link, which is found in a directory at or below `files/`, starts
 * from there with its own text of this form and by the induction ends at or below `files/`. No ".." follows a
 * name, so it does not matter how deep a name has led: a
 * ".." behind one would, since the name may be a link to the root at the time of the walk, whatever it was
 * before. Which components are links, and what is swapped meanwhile, does not enter; only the caller's own
 * rename of a directory above, in the middle of another process's walk through it, can make d wrong. (For
 * that reason a space serves one front end, and the kernel must not be told to cache link texts.)
 *
 * What is shown. A target of that form is given byte for byte. Of any other the meaning inside is kept: where
 * there is no ".." behind a name, an absolute one, or one that climbs above the root (and stands still
 * there), becomes ".." d times and its names. Else the part up to the last ".." is walked here, inside the
 * tree (resolve.c), and the text is ".." d times, the directory that it leads to, and the names that follow.
 *
 * A rewritten text is right for one directory only; a link that has several names has, for tools that keep
 * hard links (tar, rsync -H), one text: rewritten ones are refused with ELOOP then. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "fs/files/files_priv.h"

void cube_flink_parse(const char *raw, struct cube_flink_text *ret)
{
	bool leading = true;

	*ret = (struct cube_flink_text){.absolute = *raw == '/'};
	for (const char *s = raw; *s != '\0';) {
		size_t len;

		s += strspn(s, "/");
		len = strcspn(s, "/");
		if (len == 2 && memcmp(s, "..", 2) == 0) {
			if (leading)
				ret->up++;
			else
				ret->later_up = true;
		} else if (len > 0 && !(len == 1 && *s == '.')) {
			if (leading)
				ret->rest = s;
			leading = false;
		}
		s += len;
	}
	if (ret->rest == NULL)
		ret->rest = raw + strlen(raw);
}

/* ".." @depth times, then @path: "." for nothing. */
static ssize_t link_compose(unsigned depth, const char *path, char *out)
{
	size_t len = strlen(path), up = depth * strlen("../");

	if (depth == 0 && len == 0)
		return snprintf(out, PATH_MAX, ".");
	if (up + len >= PATH_MAX)
		return -ENAMETOOLONG;
	for (unsigned i = 0; i < depth; i++)
		memcpy(out + strlen("../") * i, "../", strlen("../"));
	memcpy(out + up, path, len + 1);
	if (len == 0)
		out[--up] = '\0'; /* no slash at the end */
	return (ssize_t)(up + len);
}

/* @path becomes that of the directory where the names of @t start: up from @path, or the root. */
static void link_start(const struct cube_flink_text *t, char *path)
{
	char *slash;

	for (unsigned i = 0; i < t->up && *path != '\0'; i++) {
		slash = strrchr(path, '/');
		*(slash != NULL ? slash : path) = '\0';
	}
	if (t->absolute)
		*path = '\0';
}

static bool link_is_safe(const char *text, unsigned depth)
{
	struct cube_flink_text t;

	cube_flink_parse(text, &t);
	return !t.absolute && !t.later_up && t.up <= depth;
}

/* @t, which is not of the form, as a text that is. */
static ssize_t link_rewrite(struct cube_fnode *dir, unsigned depth, const struct cube_flink_text *t,
			    char *out)
{
	char path[PATH_MAX];
	int r;

	if (!t->later_up)
		return link_compose(depth, t->rest, out);
	r = cube_fnode_path(dir, path, sizeof(path));
	if (r < 0)
		return r;
	link_start(t, path);
	r = cube_fresolve(dir->tree, path, t->rest);
	return r < 0 ? r : link_compose(depth, path, out);
}

ssize_t cube_flink_show(struct cube_fnode *dir, const char *raw, size_t len, nlink_t nlink, char *out)
{
	unsigned depth = cube_fnode_depth(dir);
	struct cube_flink_text t;
	ssize_t n;

	if (len == 0)
		return -ENOENT;
	if (dir->tree->space->options.symlinks_raw || link_is_safe(raw, depth)) {
		memcpy(out, raw, len + 1);
		return (ssize_t)len;
	}
	if (nlink > 1)
		return -ELOOP;
	cube_flink_parse(raw, &t);
	n = link_rewrite(dir, depth, &t, out);
	/* whatever is wrong with the code above: no other text leaves this function */
	return n < 0 || link_is_safe(out, depth) ? n : -ELOOP;
}
