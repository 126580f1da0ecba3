/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of real files for tests: a sandbox's root in a scratch directory, shown in a space of its own. As
 * root the directory is a file system of its own, in a private mount namespace; tests that need that ask for
 * it with stage_need_root. */
#ifndef CUBEFS_TESTS_UNIT_FILES_STAGE_H
#define CUBEFS_TESTS_UNIT_FILES_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/files/files.h"

enum stage_kind {
	STAGE_PLAIN,   /* a tmpfs as root, else a directory below TMPDIR */
	STAGE_DISK,    /* a directory of /tmp's file system */
	STAGE_OVERLAY, /* root: an overlay of two tmpfs: `lower` can be filled through stage.lower_fd before
			*/
};

struct stage {
	char top[64]; /* scratch directory: has `root`, and what a test puts beside it */
	int top_fd;   /* O_PATH */
	int fd;       /* the sandbox's root: for doing things "inside" */
	struct cube_root root;
	struct cube_files_options options;
	uint64_t seed;
	int owner; /* something to point at */
	struct cube_files_space *space;
	struct cube_files *tree;
	uint64_t id; /* of the tree's root */
};

/* Private mounts for this process; call it first in main. */
void stage_main(void);
/* Ends the test as skipped unless it runs as root. */
void stage_need_root(void);

/* The scratch directory with an empty root; nothing is attached yet, so that root and options can be set. */
void stage_prepare(struct stage *s, enum stage_kind kind);
/* Space and tree. */
void stage_attach(struct stage *s);
/* Both, with nothing special. */
void stage_open(struct stage *s);
void stage_detach(struct stage *s); /* the tree alone */
void stage_close(struct stage *s);  /* everything; fails the test if something is left open */
/* One more mount of the root at @path ("/workspace"): the directory @from beside the root (made if missing).
 */
void stage_mount(struct stage *s, const char *path, const char *from, bool read_only);

/* ---- inside: plain system calls; they must work ---- */
void stage_mkdir(const struct stage *s, const char *path);
void stage_write(const struct stage *s, const char *path, const char *text);
void stage_symlink(const struct stage *s, const char *target, const char *path);
void stage_stat(const struct stage *s, const char *path, struct stat *st);

/* ---- through the files API ---- */
/* The node of a path below the root, each name looked up and counted; the test fails if one is not there. */
uint64_t stage_node(struct stage *s, const char *path);
/* The same, or -errno. */
int stage_lookup(struct stage *s, const char *path, struct cube_files_entry *ret);
/* Content of a file as a string in @buf. */
const char *stage_read(struct stage *s, const char *path, char *buf, size_t size);
/* What readlink gives; "-ERRNO" as text for a failure. */
const char *stage_readlink(struct stage *s, const char *path, char *buf, size_t size);
/* Names of a directory, sorted, each with a blank behind; "." and ".." left out. */
const char *stage_list(struct stage *s, const char *path, char *buf, size_t size);
/* Descriptors that this process has open. */
unsigned stage_open_fds(void);

extern const struct cube_files_cred stage_cred;

#endif
