/* SPDX-License-Identifier: Apache-2.0 */
/* stdin of a job: kept on disk until it starts, passed on as the far side takes it, ended by the rules of
 * interface.md. Nothing of it is in memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "ctl/ctl_priv.h"

#define FEED_PIECE ((size_t)64 << 10)

int cube_job_input_file(const struct cube_job *j, char out[32])
{
	int n = snprintf(out, 32, "jobs/in.%llu", (unsigned long long)j->number);

	return n < 32 ? 0 : -ENAMETOOLONG;
}

static int input_open(struct cube_job_own *own)
{
	char file[32];
	int r;

	if (own->in_fd >= 0)
		return 0;
	r = cube_job_input_file(&own->j, file);
	if (r == 0)
		r = cube_output_dir(own->j.cube);
	if (r < 0)
		return r;
	own->in_fd = openat(own->j.cube->dir_fd, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return own->in_fd >= 0 ? 0 : -errno;
}

/* Before the start: at the end of the file. */
static ssize_t input_keep(struct cube_job *j, const void *data, size_t len, struct cube_err *err)
{
	struct cube_job_own *own = cube_job_own(j);
	int r = input_open(own);
	ssize_t n;

	if (r < 0)
		return cube_fail(err, r, "job '%s': its input: %s", j->name, cube_errno_text(r));
	n = pwrite(own->in_fd, data, len, (off_t)own->in_size);
	if (n < 0)
		return cube_fail_errno(err, "job '%s': its input", j->name);
	own->in_size += (uint64_t)n;
	return n;
}

ssize_t cube_job_input(struct cube_job *j, const void *data, size_t len, struct cube_err *err)
{
	struct cube_job_own *own = cube_job_own(j);
	ptrdiff_t n;

	if (j->state == CUBE_JOB_ENDED || own->in_eof || j->forgotten)
		return cube_fail(err, -EPIPE, "job '%s': its input has ended", j->name);
	if (j->state != CUBE_JOB_RUNNING)
		return input_keep(j, data, len, err);
	if (!own->in_pipe)
		return cube_fail(err, -EPIPE,
				 "job '%s' was started without an input; `stdin pipe` in its ctl before the "
				 "start makes one",
				 j->name);
	if (own->in_fed < own->in_size || !cube_conn_ready(j->cube))
		return 0; /* what came first goes first */
	n = cube_link_input(j->cube->agent, j->number, data, len);
	return n >= 0 ? n
		      : cube_fail(err, (int)n, "job '%s': its input: %s", j->name, cube_errno_text((int)n));
}

/* ---- Passing on ---- */

static bool feed_piece(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	char data[FEED_PIECE];
	ssize_t n = pread(own->in_fd, data, sizeof(data), (off_t)own->in_fed);
	ptrdiff_t taken;

	if (n <= 0) { /* a disk that lost it: the command gets what there is */
		own->in_size = own->in_fed;
		return false;
	}
	taken = cube_link_input(j->cube->agent, j->number, data, (size_t)n);
	if (taken <= 0)
		return false;
	own->in_fed += (uint64_t)taken;
	cube_journal_fed(j);
	return true;
}

void cube_job_feed(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	bool fed = false;

	if (j->state != CUBE_JOB_RUNNING || !own->in_pipe || !cube_conn_ready(j->cube))
		return;
	if (own->in_fed < own->in_size && input_open(own) < 0)
		return;
	while (own->in_fed < own->in_size && feed_piece(j))
		fed = true;
	if (fed) {
		(void)cube_journal_flush(j->cube,
					 NULL); /* at the worst the next daemon feeds a piece twice */
		cube_wake(&j->changed);
	}
	if (own->in_fed == own->in_size && own->in_eof && !own->eof_sent) {
		own->eof_sent = true;
		cube_link_eof(j->cube->agent, j->number);
	}
}

/* ---- Its end ---- */

static void input_end(struct cube_job *j)
{
	cube_job_own(j)->in_eof = true;
	cube_journal_job(j);
	(void)cube_journal_flush(j->cube, NULL); /* kept for the next flush */
	cube_job_feed(j);
	cube_wake(&j->changed);
}

void cube_job_input_open(struct cube_job *j)
{
	j->stdin_writers++;
}

/* The last close is the end: of a pipe at any time, of plain input once it runs (before that, its start
 * decides). */
void cube_job_input_close(struct cube_job *j)
{
	bool runs = j->state == CUBE_JOB_RUNNING && cube_job_own(j)->in_pipe;

	if (--j->stdin_writers > 0 || j->state == CUBE_JOB_ENDED || cube_job_own(j)->in_eof || j->forgotten)
		return;
	if (j->in_mode == CUBE_JOB_STDIN_PIPE || (j->in_mode == CUBE_JOB_STDIN_PLAIN && runs))
		input_end(j);
}

int cube_job_eof(struct cube_job *j, struct cube_err *err)
{
	if (j->forgotten)
		return cube_fail(err, -ENOENT, "job '%s' is removed", j->name);
	if (j->state != CUBE_JOB_ENDED && !cube_job_own(j)->in_eof)
		input_end(j);
	return 0;
}

void cube_job_input_start(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	if (j->in_mode == CUBE_JOB_STDIN_PLAIN && j->stdin_writers == 0)
		own->in_eof = true;
	/* Nobody has written and nobody will: empty from the start. */
	own->in_pipe = own->in_size > 0 || !own->in_eof;
}

void cube_job_input_done(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	char file[32];

	cube_close_auto(&own->in_fd);
	own->in_fd = -1;
	if (own->in_size > 0 && cube_job_input_file(j, file) == 0)
		(void)unlinkat(j->cube->dir_fd, file, 0);
	own->in_size = own->in_fed = 0;
}

void cube_job_input_adopt(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	struct stat st;
	char file[32];

	if (cube_job_input_file(j, file) == 0 &&
	    fstatat(j->cube->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
		own->in_size = (uint64_t)st.st_size;
	if (own->in_fed > own->in_size)
		own->in_fed = own->in_size;
	/* Whoever had it open lost it with the mount. */
	if (j->state == CUBE_JOB_RUNNING && own->in_pipe && j->in_mode == CUBE_JOB_STDIN_PLAIN)
		own->in_eof = true;
}
