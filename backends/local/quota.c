/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of btrfs. The calls are those of linux/btrfs.h, the trees those of linux/btrfs_tree.h. An account (qgroup) has
 * the number of its subvolume. */
#include "backends/local/quota.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#define QUOTA_ENABLE_SIMPLE 4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, younger than many headers */
#define QUOTA_FEATURE       "/sys/fs/btrfs/features/simple_quota"
#define QUOTA_SWEEP         256 /* removed sets between two looks for accounts of sets that are gone */
/* The last account of a subvolume; above are those of groups of them. */
#define QUOTA_LAST ((UINT64_C(1) << BTRFS_QGROUP_LEVEL_SHIFT) - 1)

struct cube_local_quota {
	int fs;    /* its directory of sets, open for ioctl */
	bool ours; /* nobody else has accounts there */
	atomic_uint removed;
};

/* ---- looking into the trees ---- */

/* Items of one type that belong to one object of a tree, at offsets from the first to the last. */
struct quota_items {
	uint64_t tree, object;
	uint32_t type;
	uint64_t first, last;
};

/* The first of them: 1 found (its offset, its beginning in @item), 0 none, -errno. */
static int quota_find(int fs, const struct quota_items *of, uint64_t *ret_offset, void *item, size_t size)
{
	struct btrfs_ioctl_search_args args = {.key = {.tree_id = of->tree,
						       .min_objectid = of->object,
						       .max_objectid = of->object,
						       .min_type = of->type,
						       .max_type = of->type,
						       .min_offset = of->first,
						       .max_offset = of->last,
						       .max_transid = UINT64_MAX,
						       .nr_items = 1}};
	struct btrfs_ioctl_search_header head;

	if (ioctl(fs, BTRFS_IOC_TREE_SEARCH, &args) < 0)
		return -errno;
	if (args.key.nr_items == 0)
		return 0;
	memcpy(&head, args.buf, sizeof(head));
	if (head.len < size)
		return -EIO;
	*ret_offset = head.offset;
	if (size > 0)
		memcpy(item, args.buf + sizeof(head), size);
	return 1;
}

/* The first account of the subvolumes @first to @last: 1, 0, -errno. */
static int quota_account(int fs, uint64_t first, uint64_t last, uint64_t *ret_id, uint64_t *ret_used)
{
	const struct quota_items accounts = {BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_INFO_KEY, first,
					     last};
	struct btrfs_qgroup_info_item item = {0};
	int rc = quota_find(fs, &accounts, ret_id, &item, sizeof(item));

	*ret_used = le64toh(item.rfer);
	return rc;
}

/* What cannot be looked at is taken to be there. */
static bool quota_subvolume_there(int fs, uint64_t id)
{
	const struct quota_items roots = {BTRFS_ROOT_TREE_OBJECTID, id, BTRFS_ROOT_ITEM_KEY, 0, UINT64_MAX};
	uint64_t offset;

	return quota_find(fs, &roots, &offset, NULL, 0) != 0;
}

/* 1: quotas are on, 0: they are not, -errno. */
static int quota_state(int fs)
{
	const struct quota_items status = {BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_STATUS_KEY, 0,
					   UINT64_MAX};
	struct btrfs_qgroup_status_item item = {0};
	uint64_t offset;
	int rc = quota_find(fs, &status, &offset, &item, sizeof(item));

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	return (le64toh(item.flags) & BTRFS_QGROUP_STATUS_FLAG_ON) != 0;
}

/* ---- accounts of sets that are gone ---- */

static void quota_sweep(const struct cube_local_quota *q)
{
	uint64_t id = BTRFS_FIRST_FREE_OBJECTID, used = 0;

	while (q->ours && quota_account(q->fs, id, QUOTA_LAST, &id, &used) == 1) {
		struct btrfs_ioctl_qgroup_create_args away = {.create = 0, .qgroupid = id};

		if (used == 0 && !quota_subvolume_there(q->fs, id))
			(void)ioctl(q->fs, BTRFS_IOC_QGROUP_CREATE, &away); /* else the next one does it */
		id++;
	}
}

void cube_local_quota_removed(struct cube_local_quota *q)
{
	if (atomic_fetch_add(&q->removed, 1) % QUOTA_SWEEP == QUOTA_SWEEP - 1)
		quota_sweep(q);
}

/* ---- open ---- */

int cube_local_quota_possible(struct cube_err *err)
{
	return access(QUOTA_FEATURE, F_OK) == 0
		       ? 0
		       : cube_fail(err, -EOPNOTSUPP,
				   "this kernel's btrfs has no simple quotas, by which "
				   "the store would count: Linux 6.7 has");
}

static int quota_enable(int fs, struct cube_err *err)
{
	struct btrfs_ioctl_quota_ctl_args args = {.cmd = QUOTA_ENABLE_SIMPLE};
	int rc = cube_local_quota_possible(err);

	if (rc == 0 && ioctl(fs, BTRFS_IOC_QUOTA_CTL, &args) < 0)
		rc = cube_fail(err, -EOPNOTSUPP, "quotas cannot be enabled in the image of the store: %s",
			       cube_errno_text(errno));
	return rc;
}

static int quota_ready(int fs, bool ours, struct cube_err *err)
{
	int rc = quota_state(fs);

	if (rc == 0 && ours)
		return quota_enable(fs, err);
	if (rc == 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "quotas are off on the btrfs of the state directory: btrfs quota enable -s");
	return rc < 0 ? cube_fail(err, -EOPNOTSUPP, "quotas of btrfs are not for this user: %s",
				  cube_errno_text(rc))
		      : 0;
}

int cube_local_quota_open(int sets, bool ours, struct cube_local_quota **ret, struct cube_err *err)
{
	struct cube_local_quota *q = cube_calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return cube_fail(err, -ENOMEM, "out of memory");
	q->fs = openat(sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = q->fs < 0 ? cube_fail_errno(err, "cannot open the directory of the store")
		       : quota_ready(q->fs, ours, err);
	if (rc < 0) {
		cube_local_quota_free(q);
		return rc;
	}
	q->ours = ours;
	quota_sweep(q);
	*ret = q;
	return 0;
}

void cube_local_quota_free(struct cube_local_quota *q)
{
	if (!q)
		return;
	if (q->fs >= 0)
		close(q->fs);
	cube_free(q);
}

/* ---- one set ---- */

/* The subvolume's number; -errno. */
static int quota_number(const struct cube_local_quota *q, const char *name, uint64_t *ret)
{
	cube_auto_fd set = openat(q->fs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};

	if (set < 0 || ioctl(set, BTRFS_IOC_INO_LOOKUP, &args) < 0)
		return -errno;
	*ret = args.treeid;
	return 0;
}

int cube_local_quota_limit(const struct cube_local_quota *q, const char *name, uint64_t bytes,
			   struct cube_err *err)
{
	struct btrfs_ioctl_qgroup_limit_args args = {
		.lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes ? bytes : UINT64_MAX}};
	uint64_t id = 0;
	int rc = quota_number(q, name, &id);

	args.qgroupid = id;
	if (rc == 0 && ioctl(q->fs, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
		rc = -errno;
	return rc < 0 ? cube_fail(err, rc, "cannot limit what %s takes of the disk: %s", name,
				  cube_errno_text(rc))
		      : 0;
}

uint64_t cube_local_quota_used(const struct cube_local_quota *q, const char *name)
{
	uint64_t id = 0, found = 0, used = 0;

	if (quota_number(q, name, &id) < 0 || quota_account(q->fs, id, id, &found, &used) != 1)
		return UINT64_MAX;
	return used;
}
