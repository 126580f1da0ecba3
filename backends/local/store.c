/* SPDX-License-Identifier: Apache-2.0 */
/* Which store an instance has. */
#include "backends/local/store.h"

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "backends/local/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/magic.h>

#define STORE_FILE  "store" /* the choice: one word */
#define STORE_SETS  "layers"
#define STORE_PROBE ".probe"

/* What a state directory can have. In the order in which they are tried. */
struct store_kind {
	const char *word; /* in the configuration and in STORE_FILE */
	const struct cube_local_store_ops *ops;
	bool image;
	uint64_t room; /* bytes that are free, without which it is not the best */
	const char *what;
	int (*works)(int sets, bool image, struct cube_err *err);
};

/* ---- what works ---- */

static int works_snapshots(int sets, bool image, struct cube_err *err)
{
	struct statfs st;
	int rc;

	(void)image;
	if (fstatfs(sets, &st) < 0 || st.f_type != BTRFS_SUPER_MAGIC)
		return cube_fail(err, -EOPNOTSUPP, "the state directory is not on btrfs");
	rc = cube_local_store_snapshots.make(sets, STORE_PROBE, err);
	if (rc == 0)
		rc = cube_local_store_snapshots.remove(sets, STORE_PROBE, err);
	return rc;
}

static int works_reflinks(int sets, bool image, struct cube_err *err)
{
	cube_auto_fd from = openat(sets, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	cube_auto_fd to = openat(sets, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)image;
	if (from < 0 || to < 0 || ftruncate(from, 4096) < 0 || pwrite(from, "x", 1, 0) != 1 ||
	    ioctl(to, FICLONE, (int)from) < 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "the file system of the state directory shares no blocks: %s",
				 cube_errno_text(errno));
	return 0;
}

static int works_image(int sets, bool image, struct cube_err *err)
{
	(void)sets;
	if (!image)
		return cube_fail(err, -EOPNOTSUPP, "only root of this machine can mount an image");
	return cube_local_image_possible(err);
}

static int works_copies(int sets, bool image, struct cube_err *err)
{
	(void)sets, (void)image, (void)err;
	return 0;
}

static const struct store_kind store_kinds[] = {
	{"snapshots", &cube_local_store_snapshots, false, 0, "btrfs snapshots", works_snapshots},
	{"reflinks", &cube_local_store_reflinks, false, 0, "copies that share blocks, file by file",
	 works_reflinks},
	{"image", &cube_local_store_snapshots, true, UINT64_C(8) << 30, /* it keeps blocks ahead of need */
	 "btrfs snapshots, in an image in the state directory", works_image},
	{"copies", &cube_local_store_copies, false, 0, "plain copies, file by file", works_copies},
};

static const struct store_kind *store_kind(const char *word)
{
	for (size_t i = 0; i < CUBE_COUNT(store_kinds); i++)
		if (strcmp(store_kinds[i].word, word) == 0)
			return &store_kinds[i];
	return NULL;
}

/* ---- the choice ---- */

/* The word that is written down; "" where there is none yet. */
static int store_recall(int state, char word[32])
{
	struct cube_buf text = CUBE_BUF(64);
	int rc = cube_file_read(state, STORE_FILE, &text);

	(void)snprintf(word, 32, "%.*s", rc == 0 ? (int)strcspn(cube_buf_str(&text), "\n") : 0,
		       rc == 0 ? cube_buf_str(&text) : "");
	cube_buf_done(&text);
	return rc == -ENOENT ? 0 : rc;
}

static int store_works(const struct store_kind *kind, int sets, bool image, struct cube_err *err)
{
	struct statvfs vfs;
	int rc = kind->works(sets, image, err);

	if (rc == 0 && kind->room > 0 &&
	    (fstatvfs(sets, &vfs) < 0 || (uint64_t)vfs.f_bavail * vfs.f_frsize < kind->room))
		rc = cube_fail(err, -ENOSPC, "less than %u GiB are free on the disk",
			       (unsigned)(kind->room >> 30));
	return rc;
}

/* The best that works; the reasons against the better ones go to the log. */
static const struct store_kind *store_best(int sets, bool image)
{
	for (size_t i = 0; i < CUBE_COUNT(store_kinds); i++) {
		struct cube_err why = {0};

		if (store_works(&store_kinds[i], sets, image, &why) == 0)
			return &store_kinds[i];
		cube_log(CUBE_LOG_DEBUG, "local", "no store by %s: %s", store_kinds[i].word, why.text);
	}
	return &store_kinds[CUBE_COUNT(store_kinds) - 1];
}

static int store_choose(int state, int sets, const char *wanted, bool image, const struct store_kind **ret,
			struct cube_err *err)
{
	char word[32];
	int rc = store_recall(state, word);

	if (rc < 0)
		return cube_fail(err, rc, "cannot read which store the state directory has: %s",
				 cube_errno_text(rc));
	if (*word) {
		*ret = store_kind(word);
		return *ret ? 0
			    : cube_fail(err, -EINVAL, "the state directory has the unknown store '%s'", word);
	}
	if (!wanted || strcmp(wanted, "auto") == 0) {
		*ret = store_best(sets, image);
	} else {
		*ret = store_kind(wanted);
		if (!*ret)
			return cube_fail(err, -EINVAL,
					 "store = %s: auto, snapshots, reflinks, image or copies is wanted",
					 wanted);
		rc = (*ret)->works(sets, image, err);
		if (rc < 0)
			return cube_fail_in(err, "store = %s", wanted);
	}
	return 0;
}

/* Written once, where it is not yet. */
static int store_note(int state, const struct store_kind *kind, struct cube_err *err)
{
	char word[32];
	int rc;

	if (faccessat(state, STORE_FILE, F_OK, 0) == 0)
		return 0;
	(void)snprintf(word, sizeof(word), "%s\n", kind->word);
	rc = cube_file_replace(state, STORE_FILE, word, strlen(word), 0600);
	return rc < 0 ? cube_fail(err, rc, "cannot note which store is used: %s", cube_errno_text(rc)) : 0;
}

/* ---- limits ---- */

/* Quotas cost something, so that they are enabled in our own file system alone. */
static void store_open_quota(struct cube_local_store *s, const struct store_kind *kind, bool look)
{
	struct cube_err err = {0};
	int rc;

	if (kind->ops != &cube_local_store_snapshots)
		rc = cube_fail(
			&err, -EOPNOTSUPP,
			"the store '%s' counts nothing for one sandbox; whoever fills the disk is paused "
			"(disk_reserve)",
			kind->word);
	else if (kind->image && look)
		rc = cube_local_quota_possible(&err);
	else
		rc = cube_local_quota_open(s->sets, kind->image, &s->quota, &err);
	if (rc < 0)
		(void)snprintf(s->quota_why, sizeof(s->quota_why), "%.159s", err.text);
}

int cube_local_set_limit(const struct cube_local_store *s, const char *id, uint64_t bytes,
			 struct cube_err *err)
{
	if (s->quota)
		return cube_local_quota_limit(s->quota, id, bytes, err);
	return bytes == 0 ? 0 : cube_fail(err, -EOPNOTSUPP, "%s", s->quota_why);
}

/* ---- open ---- */

static int store_open_image(struct cube_local_store *s, int state, const char *limit, struct cube_err *err)
{
	uint64_t bytes = 0;
	int root, rc;

	if (limit && cube_num_size(limit, &bytes) < 0)
		return cube_fail(err, -EINVAL, "store_limit = %s: a size is wanted, as 40G", limit);
	rc = cube_local_image_open(state, bytes, &s->image, &root, err);
	if (rc < 0)
		return rc;
	if (s->sets >= 0)
		close(cube_steal_fd(&s->sets));
	rc = cube_file_mkdir(root, STORE_SETS, 0700, &s->sets);
	return rc < 0 ? cube_fail(err, rc, "cannot make a directory in the image of the store: %s",
				  cube_errno_text(rc))
		      : 0;
}

int cube_local_store_open(struct cube_local_store *s, int state, const char *path,
			  const struct cube_conf_section *conf, enum cube_local_store_how how,
			  struct cube_err *err)
{
	const struct store_kind *kind = NULL;
	int rc;

	*s = (struct cube_local_store)CUBE_LOCAL_STORE_NONE;
	rc = cube_file_mkdir(state, STORE_SETS, 0700, &s->sets);
	if (rc < 0)
		return cube_fail(err, rc, "cannot make %s/" STORE_SETS ": %s", path, cube_errno_text(rc));
	rc = store_choose(state, s->sets, cube_conf_get(conf, "store"), how != CUBE_STORE_PLAIN, &kind, err);
	if (rc == 0 && how != CUBE_STORE_LOOK)
		rc = store_note(state, kind, err);
	if (rc == 0 && kind->image && how != CUBE_STORE_LOOK)
		rc = store_open_image(s, state, cube_conf_get(conf, "store_limit"), err);
	if (rc < 0)
		return rc;
	s->ops = how == CUBE_STORE_LOOK ? &cube_local_store_copies : kind->ops;
	(void)snprintf(s->what, sizeof(s->what), "%s", kind->what);
	store_open_quota(s, kind, how == CUBE_STORE_LOOK);
	return 0;
}

void cube_local_store_close(struct cube_local_store *s)
{
	s->ops = NULL;
	cube_local_quota_free(s->quota);
	s->quota = NULL;
	if (s->sets >= 0)
		close(cube_steal_fd(&s->sets));
	cube_local_image_close(s->image);
	s->image = NULL;
}
