/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: a sandbox's `files/`, served by system calls beneath a directory descriptor.
 *
 * Protocol neutral: the FUSE and 9P front ends translate their requests into these calls, one to one.
 * Every call may be made on any thread, without any lock of ours held, and blocks on nothing but the
 * file system of the sandbox (a lock request excepted: it has a cancel). A hostile inside may change
 * the tree at any instant; no call ever leaves it: each step resolves one name beneath a directory
 * descriptor (openat2), never a joined path, never a link, never into another mount; no open of a fifo
 * or device can block or have an effect.
 *
 * Nodes. A node id is what the front end knows (FUSE nodeid, what a 9P fid holds): CUBE_FILES_ID set,
 * never used again in the life of the space. A directory and a symbolic link have a node for each path
 * (only a rename through us moves it: so its depth is that of the caller's path, which is what
 * link rewriting needs); any other file has one for each inode. A node lives while its lookup count is
 * above 0 (each cube_files_entry that was handed out counts one; forget takes back) or it is open.
 *
 * A space serves one front end: the depth of a link, which decides what is shown of it, is that of this one's
 * paths, and another one's rename would change it behind its back. For the same reason a kernel must not be
 * told to cache link texts (FUSE_CAP_CACHE_SYMLINKS).
 *
 * What is mounted. The root and what struct cube_root names are served, each through its own descriptor; what
 * is read_only in there is -EROFS to change. Anything else that is mounted inside, on a directory or a file,
 * is shown as an empty one that belongs to the root and in which nothing can be made (-EROFS). What is or has
 * a mount cannot be removed or renamed (-EBUSY), as inside. Between mounts rename and link are -EXDEV.
 *
 * Side effects on the process: cube_files_mknod, mkdir, symlink and create set the calling thread's file
 * system ids and effective capabilities for the length of the call where files belong to others than the
 * process (owner.c); a cancellable wait for a lock uses SIGURG (lockwait.c). /proc must be mounted.
 *
 * Failures are plain -errno; a stale node (its root was replaced or detached, or the object behind the
 * name is another one) is -ESTALE, an unlinked one keeps working through its open handles. */
#ifndef CUBEFS_FS_FILES_FILES_H
#define CUBEFS_FS_FILES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/base/cancel.h"
#include "backends/base/list.h"
#include "fs/keep/keep.h"

/* Set in every node id of this module, never in one of the synthetic tree's. */
#define CUBE_FILES_ID (UINT64_C(1) << 62)

struct cube_files_space;  /* all nodes of a mount */
struct cube_files;        /* one tree shown in it: reference counted */
struct cube_files_handle; /* an open file or directory */

struct cube_files_options {
	bool symlinks_raw; /* -o symlinks=raw: link targets as they are */
	bool owners_raw;   /* -o owners=raw: no exchange of the mounting user's ids and root's */
	uid_t uid;         /* who mounted */
	gid_t gid;
	struct cube_keep *keep; /* what outlives this process; NULL: nothing does */
};

/* Who asks: only for what belongs to whom; access is decided by the front end and the kernel. */
struct cube_files_cred {
	uid_t uid; /* as the caller's kernel sees it */
	gid_t gid;
	pid_t pid;
};

struct cube_files_entry {
	uint64_t id;
	uint64_t generation;
	struct stat st; /* as shown: ids exchanged, unique st_ino, link size of the given text */
	bool keep_name; /* what the name stands for holds until the watcher is told; see cube_files_watch */
	bool keep_attr; /* so do the attributes */
};

struct cube_files_space *cube_files_space_new(const struct cube_files_options *options); /* NULL: memory */
void cube_files_space_free(struct cube_files_space *s); /* no call under way, all trees detached */

/* Show @root (its descriptors are taken over on success). @seed makes inode numbers unique: different
 * for every sandbox and checkpoint, the same for one each time. @owner is the caller's, given back by
 * cube_files_owner. One reference for the caller. */
int cube_files_attach(struct cube_files_space *s, struct cube_root *root, uint64_t seed, void *owner,
		      struct cube_files **ret);
/* The same for a tree that a process before this one had shown, with that root's id: its nodes come with
 * cube_files_restore. @record is that of cube_files_keep_as. */
int cube_files_attach_again(struct cube_files_space *s, struct cube_root *root, uint64_t seed, void *owner,
			    uint64_t root_id, uint32_t record, struct cube_files **ret);
/* It is the one of that record of fs/keep: from now on its nodes are written down. Before any of them is made. */
void cube_files_keep_as(struct cube_files *f, uint32_t record);
/* Once, after all that is attached again is: nodes and locks of the process before get their numbers. -ENOMEM. */
int cube_files_restore(struct cube_files_space *s);
/* The node of that id is open as @fd, which is taken over: as open and opendir. */
int cube_files_adopt(struct cube_files_space *s, uint64_t id, int fd, int flags, bool is_dir,
		     struct cube_files_handle **ret);
/* The tree is gone or replaced: its nodes are stale from now on, handles too (files that are open for
 * reading by system calls already under way end normally). The caller's reference ends. */
void cube_files_detach(struct cube_files *f);
/* What is mounted at @path (as in struct cube_root) is no more: what is below it is stale from now on. Files that
 * are open go on. */
void cube_files_cut(struct cube_files *f, const char *path);
/* Nobody has a node of it or anything open: detaching it would be noticed by none. */
bool cube_files_idle(const struct cube_files *f);
struct cube_files *cube_files_ref(struct cube_files *f);
void cube_files_unref(struct cube_files *f);

/* Its root directory's node id, valid until detached, needing no lookup count; ".." of it stays there. */
uint64_t cube_files_root(const struct cube_files *f);
/* How many files are open (what `idle` asks; a directory is only looked at), and when the latest of them was
 * closed (wall clock, ns; 0: none yet). Any thread. */
unsigned long cube_files_open_count(const struct cube_files *f);
uint64_t cube_files_closed_wall(const struct cube_files *f);
/* The owner of the tree in which @id lies (a counted node of the caller's, so it cannot vanish); NULL when
 * the tree was detached. */
void *cube_files_owner(struct cube_files_space *s, uint64_t id);

/* -ENOENT: ret->keep_name is set too. */
int cube_files_lookup(struct cube_files_space *s, uint64_t parent, const char *name,
		      struct cube_files_entry *ret);
void cube_files_forget(struct cube_files_space *s, uint64_t id, uint64_t n);
/* @h may be NULL; with it, an unlinked file answers too. */
int cube_files_getattr(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h,
		       struct stat *ret);
/* When it was made; -ENODATA: its file system does not say. */
int cube_files_birth(struct cube_files_space *s, uint64_t id, struct timespec *ret);
/* The same; *ret_keep as keep_attr. */
int cube_files_getattr_keep(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h,
			    struct stat *ret, bool *ret_keep);

/* What may be kept. A front end that keeps names and attributes is told when what it has is old. Its functions are
 * called on any thread, with no lock of the table's held, and must not wait for what serves requests. */
struct cube_files_watcher {
	void *ctx;
	/* The name in that directory is another's, or nobody's. @again: a file has come where there was none, and it is
	 * enough to look it up again; else what is known of it must go, unless cube_files_holds. */
	void (*name)(void *ctx, uint64_t dir, const char *name, bool again);
	void (*attr)(void *ctx, uint64_t id); /* the attributes of that node */
	void (*all)(void *ctx);               /* every name; `attr` is called for all that it may concern */
	/* The attributes of that node could be kept if nothing ran in its tree: cube_files_quiet. Not again before that
	 * was called. Whatever locks the caller of this module holds are held. */
	void (*ask)(void *ctx, uint64_t id);
};
/* Once, before the first request. A descriptor that is readable when there is something to be told; it stays the
 * space's. -errno: nothing is kept. */
int cube_files_watch(struct cube_files_space *s, const struct cube_files_watcher *to);
/* Was the last that was to be watched refused, since there is no more room for watches? */
bool cube_files_watch_short(const struct cube_files_space *s);
/* All that has happened has been told when this returns. To be called before anybody is told that something inside is
 * done. Any thread, no lock held that the watcher's functions take. */
void cube_files_tell(struct cube_files_space *s);
/* The kernel that is told asks for something that takes @name out of @dir or (@comes) puts it there, and knows by the answer
 * that it is so: it is not told. begin: before the one of this module's functions that does it; end: behind that, before
 * the answer; @done: it was not refused. The memory is the caller's, @name has to live until the end. What another front
 * end does is told, as what others do. */
struct cube_files_own {
	struct cube_list link;
	uint64_t dir;
	const char *name;
	bool comes, is_noted, is_seen;
};
void cube_files_own_begin(struct cube_files_space *s, struct cube_files_own *own, uint64_t dir,
			  const char *name, bool comes);
void cube_files_own_end(struct cube_files_space *s, struct cube_files_own *own, bool done);
/* Does the name stand for what the node table says? What is told of it then only has to be asked for again: who found that
 * it is another's than the kernel knew has taken the former out of its table, or is about to. */
bool cube_files_holds(struct cube_files_space *s, uint64_t dir, const char *name);
/* All nodes that there are just now. */
void cube_files_each(struct cube_files_space *s, void (*each)(void *ctx, uint64_t id), void *ctx);
/* The names of a node. */
void cube_files_names(struct cube_files_space *s, uint64_t id,
		      void (*each)(void *ctx, uint64_t dir, const char *name), void *ctx);
/* Does nothing run in the tree? Not at first. To be cleared before anything is started, and after it has ended (who
 * knows what it left running). */
void cube_files_quiet(struct cube_files *f, bool quiet);
/* It may be mapped for writing from now on, by who need not say when he is done: its attributes are not kept any more. */
void cube_files_mapped(struct cube_files_handle *h);
/* @id is about to be opened: does what the front end has cached of its data, since an open before this one, still hold?
 * Nothing has run in its tree since then that could have written a page without any event; what else changes it is to be
 * found by the attributes. If not, the cache is to be emptied by this open. Any thread. */
bool cube_files_holds_pages(struct cube_files_space *s, uint64_t id);
/* From now on: others show it too, and may change it behind this one's back. What was kept is told to be old. */
void cube_files_keep_nothing(struct cube_files *f);

#define CUBE_SET_MODE      1u
#define CUBE_SET_UID       2u
#define CUBE_SET_GID       4u
#define CUBE_SET_SIZE      8u
#define CUBE_SET_ATIME     0x10u
#define CUBE_SET_MTIME     0x20u
#define CUBE_SET_ATIME_NOW 0x40u
#define CUBE_SET_MTIME_NOW 0x80u
/* All or, as far as one system call after the other allows, none. */
int cube_files_setattr(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h,
		       const struct stat *st, unsigned set, struct stat *ret);

/* @c writes to it, by another way than these calls: whoever is not the sandbox's root leaves the file no setuid bit, and
 * no setgid bit where that is not for locking. Attributes as they are then. */
int cube_files_written(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t id,
		       struct stat *ret);

/* The target as shown (header of links.c says how), NUL ended, at most @size - 1 bytes. Length. */
ssize_t cube_files_readlink(struct cube_files_space *s, uint64_t id, char *buf, size_t size);

/* mode has the type for mknod (regular, fifo, socket; devices are made only as the sandbox's root could:
 * -EPERM). umask is already applied; that of the process should be 0 (else it is undone by a chmod
 * afterwards). */
int cube_files_mknod(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		     const char *name, mode_t mode, dev_t rdev, struct cube_files_entry *ret);
int cube_files_mkdir(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		     const char *name, mode_t mode, struct cube_files_entry *ret);
int cube_files_symlink(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		       const char *name, const char *target, struct cube_files_entry *ret);
int cube_files_link(struct cube_files_space *s, uint64_t id, uint64_t new_parent, const char *new_name,
		    struct cube_files_entry *ret);
int cube_files_unlink(struct cube_files_space *s, uint64_t parent, const char *name);
int cube_files_rmdir(struct cube_files_space *s, uint64_t parent, const char *name);
/* flags: RENAME_NOREPLACE, RENAME_EXCHANGE. Between two trees: -EXDEV. */
int cube_files_rename(struct cube_files_space *s, uint64_t parent, const char *name, uint64_t new_parent,
		      const char *new_name, unsigned flags);

/* Such a rename was done by the process before, which had no time to note it. */
int cube_files_renamed(struct cube_files_space *s, uint64_t parent, const char *name, uint64_t new_parent,
		       const char *new_name);

/* flags: open(2)'s. A fifo, socket or device: -ENXIO (no effect outside). */
int cube_files_open(struct cube_files_space *s, uint64_t id, int flags, struct cube_files_handle **ret);
int cube_files_create(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		      const char *name, int flags, mode_t mode, struct cube_files_entry *ret,
		      struct cube_files_handle **ret_h);
/* A file without a name in @parent, as O_TMPFILE makes it; link gives it one, unless @flags have O_EXCL. */
int cube_files_tmpfile(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		       int flags, mode_t mode, struct cube_files_entry *ret,
		       struct cube_files_handle **ret_h);
/* @c has opened it with O_TRUNC: that takes the same bits as a write (cube_files_written). */
void cube_files_truncated(struct cube_files_handle *h, const struct cube_files_cred *c);
/* The descriptor behind, for splice and passthrough; the handle's. */
int cube_files_fd(const struct cube_files_handle *h);
ssize_t cube_files_read(struct cube_files_handle *h, void *data, size_t len, off_t offset);
/* At the end of the file where it was opened with O_APPEND ... */
ssize_t cube_files_write(struct cube_files_handle *h, const void *data, size_t len, off_t offset);
/* ... or where @flags, those of the open file as they are now (fcntl(2) changes them), have it. */
ssize_t cube_files_write_flags(struct cube_files_handle *h, const void *data, size_t len, off_t offset,
			       int flags);
int cube_files_flush(struct cube_files_handle *h, uint64_t lock_owner); /* drops that owner's POSIX locks */
int cube_files_fsync(struct cube_files_handle *h, bool data_only);
void cube_files_release(struct cube_files_handle *h);

int cube_files_opendir(struct cube_files_space *s, uint64_t id, struct cube_files_handle **ret);
/* Entries from @offset (0: start) on: @add gets each with the offset that continues behind it; non-zero
 * from it stops (and that entry is asked for again). With @plus, *e is a counted entry (e->id 0 where it
 * could not be had; if @add refuses it, the count is taken back here); else only e->st.st_ino and
 * st_mode are set. "." and ".." come without count. */
int cube_files_readdir(struct cube_files_space *s, struct cube_files_handle *h, off_t offset, bool plus,
		       int (*add)(void *ctx, const char *name, const struct cube_files_entry *e, off_t next),
		       void *ctx);
int cube_files_fsyncdir(struct cube_files_handle *h, bool data_only);

int cube_files_statfs(struct cube_files_space *s, uint64_t id, struct statvfs *ret);
int cube_files_access(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t id, int mask);

/* user.* passes; security.capability and POSIX ACLs as said in xattr.c; trusted.* is -EOPNOTSUPP (get:
 * -ENODATA). */
int cube_files_setxattr(struct cube_files_space *s, uint64_t id, const char *name, const void *value,
			size_t size, int flags);
ssize_t cube_files_getxattr(struct cube_files_space *s, uint64_t id, const char *name, void *value,
			    size_t size);
ssize_t cube_files_listxattr(struct cube_files_space *s, uint64_t id, char *list, size_t size);
int cube_files_removexattr(struct cube_files_space *s, uint64_t id, const char *name);

int cube_files_fallocate(struct cube_files_handle *h, int mode, off_t offset, off_t len);
off_t cube_files_lseek(struct cube_files_handle *h, off_t offset, int whence); /* SEEK_HOLE, SEEK_DATA */
ssize_t cube_files_copy_range(struct cube_files_handle *from, off_t from_off, struct cube_files_handle *to,
			      off_t to_off, size_t len, unsigned flags);

struct flock;
/* Shared with the inside. setlk with @wait blocks its thread until it has the lock or @cancel fires (-EINTR).
 */
int cube_files_getlk(struct cube_files_handle *h, uint64_t owner, struct flock *lock);
int cube_files_setlk(struct cube_files_handle *h, uint64_t owner, const struct flock *lock, bool wait,
		     struct cube_cancel *cancel);
/* A lock is in the way: is it about to go, because another open of the file was closed and is not released yet, or has it
 * gone since *seen (at first: of before it was tried)? True: something was released since, it may be tried again. Blocks
 * until then, at most until @until (monotonic, ns); what was only one of several descriptors of an open is not waited for
 * again. */
unsigned long cube_files_lock_seen(struct cube_files_handle *h);
bool cube_files_lock_soon(struct cube_files_handle *h, unsigned long *seen, uint64_t until);
int cube_files_flock(struct cube_files_handle *h, uint64_t owner, int op,
		     struct cube_cancel *cancel); /* LOCK_NB: at once */

#endif
