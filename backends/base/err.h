/* SPDX-License-Identifier: Apache-2.0 */
/* A failure: a negative errno for programs and one sentence for people.
 *
 * The convention of the whole project: functions return 0 (or a count) or a negative errno, and
 * those that can fail in an interesting way take a `struct cube_err *` as their last parameter,
 * which may be NULL. The sentence names the object, the reason and what to do; lower case, no
 * full stop. Outputs are touched only on success. */
#ifndef CUBEFS_BACKENDS_BASE_ERR_H
#define CUBEFS_BACKENDS_BASE_ERR_H

#define CUBE_ERR_TEXT 400

struct cube_err {
	int code;                 /* negative errno; 0 when unset */
	char text[CUBE_ERR_TEXT]; /* one line, printable (what is not becomes \xHH), cut between characters */
};

/* Record a failure and hand back @code (negative). @err may be NULL, and its text an argument. Never
 * allocates. */
int cube_fail(struct cube_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put context in front of a failure that came from below ("context: reason"); returns err->code,
 * or -EIO where @err is NULL. */
int cube_fail_in(struct cube_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As cube_fail, with ": " and the text of the current errno behind; returns -errno. */
int cube_fail_errno(struct cube_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef __clang_analyzer__
/* The analyser sees one source at a time: it is told that a failure is one, and looks no further where rc == 0. */
static inline int cube_err_failed(int code)
{
	if (code >= 0)
		__builtin_unreachable();
	return code;
}
#define cube_fail(...)       cube_err_failed((cube_fail)(__VA_ARGS__))
#define cube_fail_in(...)    cube_err_failed((cube_fail_in)(__VA_ARGS__))
#define cube_fail_errno(...) cube_err_failed((cube_fail_errno)(__VA_ARGS__))
#endif

/* Name of an errno, positive or negative ("ENOENT"); "E?" for one that is not known. */
const char *cube_errno_name(int code);

/* Text of an errno, positive or negative, thread safe and constant ("No such file or directory"). */
const char *cube_errno_text(int code);

#endif
