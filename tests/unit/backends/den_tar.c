/* SPDX-License-Identifier: Apache-2.0 */
/* Archives for tests. */
#include "tests/unit/backends/den.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"

struct den_tar {
	struct archive *a;
	int fd;
};

struct den_tar *den_tar_new(const char *filter)
{
	struct den_tar *t = cube_calloc(1, sizeof(*t));

	assert_non_null(t);
	t->fd = memfd_create("archive", MFD_CLOEXEC);
	t->a = archive_write_new();
	assert_true(t->fd >= 0 && t->a != NULL);
	if (filter != NULL)
		assert_int_equal(archive_write_add_filter_by_name(t->a, filter), ARCHIVE_OK);
	assert_int_equal(archive_write_set_format_pax_restricted(t->a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_fd(t->a, t->fd), ARCHIVE_OK);
	return t;
}

static struct archive_entry *tar_entry(const char *name, mode_t type, mode_t mode)
{
	struct archive_entry *e = archive_entry_new();

	assert_non_null(e);
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, mode);
	return e;
}

void den_tar_add(struct den_tar *t, const char *name, mode_t type, mode_t mode, uid_t uid, const char *data,
		 size_t len)
{
	struct archive_entry *e = tar_entry(name, type, mode);

	archive_entry_set_uid(e, uid);
	archive_entry_set_gid(e, uid);
	archive_entry_set_size(e, (la_int64_t)len);
	assert_int_equal(archive_write_header(t->a, e), ARCHIVE_OK);
	if (len > 0)
		assert_int_equal(archive_write_data(t->a, data, len), len);
	archive_entry_free(e);
}

void den_tar_link(struct den_tar *t, const char *name, const char *target, bool hard)
{
	struct archive_entry *e = tar_entry(name, hard ? S_IFREG : S_IFLNK, 0777);

	if (hard)
		archive_entry_set_hardlink(e, target);
	else
		archive_entry_set_symlink(e, target);
	assert_int_equal(archive_write_header(t->a, e), ARCHIVE_OK);
	archive_entry_free(e);
}

void den_tar_root(struct den_tar *t)
{
	static const char *const names[] = {"sh",    "ls",   "cat",   "echo", "id",
					    "sleep", "stat", "touch", "true"};
	cube_auto_fd fd = open("/bin/busybox", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	if (fd < 0)
		fail_msg("busybox is not installed: apt-get install busybox-static");
	assert_int_equal(fstat(fd, &st), 0);
	data = cube_malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	den_tar_add(t, "./", S_IFDIR, 0755, 0, NULL, 0);
	den_tar_add(t, "./bin/busybox", S_IFREG, 0755, 0, data, (size_t)st.st_size);
	for (size_t i = 0; i < CUBE_COUNT(names); i++) {
		char path[32] = "./bin/";

		den_tar_link(t, strncat(path, names[i], 16), "busybox", false);
	}
	cube_free(data);
}

int den_tar_end(struct den_tar *t)
{
	int fd = t->fd;

	assert_int_equal(archive_write_close(t->a), ARCHIVE_OK);
	archive_write_free(t->a);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	cube_free(t);
	return fd;
}
