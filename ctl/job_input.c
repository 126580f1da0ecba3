/* SPDX-License-Identifier: Apache-2.0 */
/* stdin of a job: kept on disk until the far side has it, passed on as that takes it, ended by the rules of
 * interface.md. Nothing of it is in memory.
 *
 * Not a byte is lost or doubled when this process is killed: what a write promised is in the file before the
 * write returns, at the offset that it has in the input; the far side counts what it got, tells the count to the
 * next link, and that goes on from there. Nothing about it is in the journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "ctl/ctl_priv.h"

#define FEED_PIECE ((size_t)64 << 10)
#define FEED_AHEAD (UINT64_C(1) << 20) /* of a command that runs: written, and not yet at the far side */

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

/* What is written goes to the end of the file; so it is kept whatever becomes of this process or of the link. */
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

/* For a command that runs: on as far as it goes, at once from memory where nothing waits before it. */
static ssize_t input_pass(struct cube_job *j, const void *data, size_t len, struct cube_err *err)
{
	struct cube_job_own *own = cube_job_own(j);
	uint64_t ahead = own->in_size - own->in_got;
	bool direct = own->in_fed == own->in_size && cube_conn_ready(j->cube);
	ptrdiff_t taken;
	ssize_t n;

	if (ahead >= FEED_AHEAD)
		return 0;
	n = input_keep(j, data, len < FEED_AHEAD - ahead ? len : (size_t)(FEED_AHEAD - ahead), err);
	if (n <= 0 || !direct)
		return n;
	taken = cube_link_input(j->cube->agent, j->number, data, (size_t)n);
	if (taken > 0)
		own->in_fed += (uint64_t)taken;
	return n;
}

ssize_t cube_job_input(struct cube_job *j, const void *data, size_t len, struct cube_err *err)
{
	struct cube_job_own *own = cube_job_own(j);

	if (j->state == CUBE_JOB_ENDED || own->in_eof || j->forgotten)
		return cube_fail(err, -EPIPE, "job '%s': its input has ended", j->name);
	if (j->state != CUBE_JOB_RUNNING)
		return input_keep(j, data, len, err);
	if (!own->in_pipe)
		return cube_fail(err, -EPIPE,
				 "job '%s' was started without an input; `stdin pipe` in its ctl before the "
				 "start makes one",
				 j->name);
	return input_pass(j, data, len, err);
}

uint64_t cube_job_input_total(struct cube_job *j)
{
	return cube_job_own(j)->in_size;
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
	return true;
}

void cube_job_feed(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	if (j->state != CUBE_JOB_RUNNING || !own->in_pipe || !cube_conn_ready(j->cube))
		return;
	if (own->in_fed < own->in_size && input_open(own) < 0)
		return;
	while (own->in_fed < own->in_size && feed_piece(j))
		;
	if (own->in_fed == own->in_size && own->in_eof && !own->eof_sent) {
		own->eof_sent = true;
		cube_link_eof(j->cube->agent, j->number);
	}
}

/* What has arrived is needed no more. The file keeps its length, which is how much was written; where its front
 * cannot be given back by itself, all of it is, once all of it has arrived. */
static void input_give_back(struct cube_job_own *own)
{
	off_t size = (off_t)own->in_size;

	if (own->in_fd < 0 || own->in_got - own->in_base < FEED_AHEAD)
		return;
	if (fallocate(own->in_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)own->in_base,
		      (off_t)(own->in_got - own->in_base)) == 0)
		own->in_base = own->in_got;
	else if (own->in_got == own->in_size && ftruncate(own->in_fd, 0) == 0)
		own->in_base = ftruncate(own->in_fd, size) == 0 ? own->in_got : 0;
}

void cube_job_input_got(struct cube_job *j, uint64_t got)
{
	struct cube_job_own *own = cube_job_own(j);

	if (got > own->in_size) /* no honest agent has more than was ever written */
		got = own->in_size;
	if (got > own->in_got)
		own->in_got = got;
	/* A new link begins where the far side is: what an earlier one had still under way is gone. */
	if (!cube_conn_ready(j->cube) || own->in_fed < own->in_got) {
		own->in_fed = own->in_got;
		own->eof_sent = false;
	}
	input_give_back(own);
	cube_job_feed(j);
	cube_wake(&j->changed);
}

void cube_job_input_again(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	own->in_fed = own->in_got = 0;
	own->eof_sent = false;
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
	cube_use_begin(j->cube);
}

/* The last close is the end: of a pipe at any time, of plain input once it runs (before that, its start
 * decides). */
void cube_job_input_close(struct cube_job *j)
{
	bool runs = j->state == CUBE_JOB_RUNNING && cube_job_own(j)->in_pipe;

	cube_use_end(j->cube);
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
	own->in_size = own->in_fed = own->in_got = own->in_base = 0;
}

void cube_job_input_adopt(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	struct stat st;
	char file[32];

	if (cube_job_input_file(j, file) == 0 &&
	    fstatat(j->cube->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
		own->in_size = (uint64_t)st.st_size;
}

/* Whoever had it open lost it with the mount, unless the mount lives on. */
void cube_job_inputs_end(struct cube_cube *c)
{
	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);
		struct cube_job_own *own = cube_job_own(j);

		if (j->state == CUBE_JOB_RUNNING && own->in_pipe && j->in_mode == CUBE_JOB_STDIN_PLAIN &&
		    j->stdin_writers == 0)
			own->in_eof = true;
	}
}
