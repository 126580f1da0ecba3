/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the POSIX suite share: the checks, and the table of their cases.
 *
 * A case is a function that runs in an empty directory of its own, as its working directory, with umask 022. It
 * makes checks; each prints one line, "ok CASE: TEXT" or "wrong CASE: TEXT: got, wanted". What is checked is what
 * POSIX and the manual pages of Linux say, whatever the file system does. */
#ifndef CUBEFS_TESTS_POSIX_SUITE_H
#define CUBEFS_TESTS_POSIX_SUITE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Where a case can be run. */
#define SUITE_ROOT  1u /* by root, who may become another user */
#define SUITE_INNER 2u /* the same directory as the inside sees it is known */

struct suite_case {
	const char *name;
	void (*run)(void);
	unsigned needs;
};

/* The cases of each file; the last has no name. */
extern const struct suite_case suite_open[], suite_names[], suite_rename[], suite_modes[], suite_times[],
	suite_sizes[], suite_data[], suite_xattrs[], suite_locks[], suite_dirs[], suite_nodes[];

/* 0 or more: well. */
void suite_ok(const char *text, long long got, int error);
/* -1 with @error. */
void suite_fails(const char *text, int error, long long got, int got_error);
void suite_is(const char *text, long long got, long long wanted);

#define OK(call)                                                                                             \
	do {                                                                                                 \
		const long long suite_got = (long long)(call);                                               \
		suite_ok(#call, suite_got, errno);                                                           \
	} while (0)
#define FAILS(error, call)                                                                                   \
	do {                                                                                                 \
		const long long suite_got = (long long)(call);                                               \
		suite_fails(#call, (error), suite_got, errno);                                               \
	} while (0)
#define IS(expression, wanted) suite_is(#expression, (long long)(expression), (long long)(wanted))

/* Runs @fn as an ordinary user who is in no group but his own, with checks of its own. */
void suite_as_user(void (*fn)(void));
#define SUITE_USER  2000u
#define SUITE_GROUP 2001u

/* The path of @name as the inside sees it, for SUITE_INNER. Stays until the call after the next. */
const char *suite_inner(const char *name);

/* Small things that many cases need. Each is a check itself: it prints a line when it fails. */
int suite_file(const char *name, const char *text); /* makes or replaces it; 0 */
struct stat suite_stat(const char *name);           /* lstat */
bool suite_has(const char *name, const char *text); /* that is all its content */
mode_t suite_mode(const char *name);                /* its permission bits */

/* A child that runs @fn; its exit status, or 128 + the signal that ended it. */
int suite_child(int (*fn)(void));
pid_t suite_start(int (*fn)(void));
int suite_end(pid_t pid);

#endif
