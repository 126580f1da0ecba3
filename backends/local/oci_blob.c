/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an image: opened beneath its directory, checked, read. */
#include "backends/local/oci.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define IMAGE_JSON_MAX ((size_t)4 << 20)

int cube_local_oci_blob(const char *digest, int64_t size, struct cube_local_blob *ret, struct cube_err *err)
{
	const char *hex = digest + strlen("sha256:");

	if (strncmp(digest, "sha256:", strlen("sha256:")) != 0 || strlen(hex) != 64 ||
	    strspn(hex, "0123456789abcdef") != 64)
		return cube_fail(err, -EINVAL, "'%.80s' is no digest: sha256: and 64 hexadecimal digits",
				 digest);
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
	(void)snprintf(ret->path, sizeof(ret->path), "blobs/sha256/%s", hex);
	ret->size = size;
	return 0;
}

/* Links inside the image are followed (docker save once wrote such), never one that leads out. */
static int blob_open_file(const struct cube_local_import *im, int dir, const char *path, struct stat *ret_st,
			  int *ret_fd, struct cube_err *err)
{
	cube_auto_fd fd = cube_local_import_open(im, dir, path, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return cube_fail(err, fd == -ENOENT || fd == -EXDEV || fd == -ELOOP ? -EINVAL : fd,
				 "its file %.100s: %s", path, cube_errno_text(fd));
	if (fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode))
		return cube_fail(err, -EINVAL, "its file %.100s is no plain file", path);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

int cube_local_oci_open(const struct cube_local_oci *image, const struct cube_local_blob *blob,
			struct cube_local_import *im, int *ret_fd, struct cube_err *err)
{
	char print[CUBE_DIGEST_TEXT];
	cube_auto_fd fd = -1;
	struct stat st;
	int rc = blob_open_file(im, image->dir, blob->path, &st, &fd, err);

	if (rc < 0)
		return rc;
	if (blob->size >= 0 && st.st_size != blob->size)
		return cube_fail(err, -EINVAL, "%s has %lld bytes instead of %lld", blob->digest,
				 (long long)st.st_size, (long long)blob->size);
	rc = cube_local_import_print(im, fd, print, err);
	if (rc < 0)
		return rc;
	if (strcmp(print, blob->digest) != 0)
		return cube_fail(err, -EINVAL, "%.100s is not what its digest says: it has %s", blob->path,
				 print);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

static int blob_slurp(int fd, struct cube_buf *out)
{
	char block[16384];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, block, sizeof(block), at)) > 0) {
		if (cube_buf_add(out, block, (size_t)n) < 0)
			return out->error;
		at += n;
	}
	return n < 0 ? -errno : 0;
}

int cube_local_oci_json(const struct cube_local_oci *image, const char *path,
			const struct cube_local_blob *blob, struct cube_local_import *im, json_t **ret,
			struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(IMAGE_JSON_MAX);
	cube_auto_fd fd = -1;
	struct stat st;
	int rc = blob != NULL ? cube_local_oci_open(image, blob, im, &fd, err)
			      : blob_open_file(im, image->dir, path, &st, &fd, err);

	if (rc < 0)
		return rc;
	rc = blob_slurp(fd, &text);
	if (rc < 0)
		(void)cube_fail(err, rc == -EMSGSIZE ? -EINVAL : rc, "its file %.100s: %s", path,
				rc == -EMSGSIZE ? "too large for what it should be" : cube_errno_text(rc));
	else
		rc = cube_json_parse(cube_buf_str(&text), text.len, path, ret, err);
	cube_buf_done(&text);
	return rc == -EMSGSIZE ? -EINVAL : rc;
}

/* ---- the configuration ---- */

const char *cube_local_oci_machine(void)
{
	static const char *const names[][2] = {
		{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"i686", "386"},
		{"armv7l", "arm"},   {"armv6l", "arm"},
	};
	static _Thread_local struct utsname u;

	(void)uname(&u);
	for (size_t i = 0; i < CUBE_COUNT(names); i++)
		if (strcmp(u.machine, names[i][0]) == 0)
			return names[i][1];
	return u.machine; /* the others have the same name in both */
}

/* A line that is no NAME=VALUE is left out: images have such, and no shell would take it. */
static int config_env(const json_t *list, struct cube_buf *out)
{
	size_t i;
	json_t *word;

	json_array_foreach(list, i, word)
	{
		const char *text = json_string_value(word);
		const char *eq = text != NULL ? strchr(text, '=') : NULL;

		if (eq != NULL && strlen(text) == json_string_length(word) &&
		    cube_name_env_ok(text, (size_t)(eq - text)))
			(void)cube_buf_add(out, text, strlen(text) + 1);
	}
	return out->error;
}

static int config_words(const json_t *list, struct cube_buf *out)
{
	size_t i;
	json_t *word;

	json_array_foreach(list, i, word)
	{
		const char *text = json_string_value(word);

		if (text != NULL && strlen(text) == json_string_length(word))
			(void)cube_buf_add(out, text, strlen(text) + 1);
	}
	return out->error;
}

int cube_local_oci_config(struct cube_local_oci *image, const json_t *config, struct cube_err *err)
{
	const json_t *c = json_object_get(config, "config");
	struct cube_template_config *to = image->config;
	const char *os = cube_json_str(config, "os", "linux");
	int rc;

	if (strcmp(os, "linux") != 0)
		return cube_fail(err, -EOPNOTSUPP, "it is for %.40s, and local sandboxes run linux alone",
				 os);
	rc = config_env(json_object_get(c, "Env"), &to->env);
	if (rc == 0)
		rc = config_words(json_object_get(c, "Entrypoint"), &to->entrypoint);
	if (rc == 0)
		rc = config_words(json_object_get(c, "Cmd"), &to->entrypoint);
	(void)snprintf(to->workdir, sizeof(to->workdir), "%s", cube_json_str(c, "WorkingDir", ""));
	(void)snprintf(to->user, sizeof(to->user), "%s", cube_json_str(c, "User", ""));
	return rc < 0 ? cube_fail(err, rc == -EMSGSIZE ? -EINVAL : rc, "its environment: %s",
				  cube_errno_text(rc))
		      : 0;
}
