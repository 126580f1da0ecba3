/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/cubes/UID/jobs after a load: what belongs to nothing is removed. Names are KIND.NUMBER. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/map.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"

struct used {
	struct cube_cube *cube;
	struct cube_imap *slots; /* of spools, by number */
};

static bool slot_used(const struct used *u, uint64_t slot)
{
	return cube_imap_get(u->slots, slot) != NULL;
}

static bool text_used(const struct used *u, uint64_t number)
{
	struct cube_job *j = cube_job_by_number(u->cube, number);

	return j != NULL && cube_job_own(j)->text_on_disk;
}

static bool input_used(const struct used *u, uint64_t number)
{
	struct cube_job *j = cube_job_by_number(u->cube, number);

	return j != NULL && j->state != CUBE_JOB_ENDED;
}

static bool session_used(const struct used *u, uint64_t number)
{
	return cube_session_by_number(u->cube, number) != NULL;
}

static const struct {
	const char *kind;
	bool (*used)(const struct used *u, uint64_t number);
} dir_kinds[] = {
	{"out", slot_used}, {"order", slot_used},      {"cmd", text_used},
	{"in", input_used}, {"session", session_used},
};

static bool dir_used(const struct used *u, const char *name)
{
	const char *dot = strchr(name, '.');
	uint64_t number;

	if (dot == NULL || cube_num_u64(dot + 1, UINT64_MAX, &number) < 0)
		return false; /* half written: *.new */
	for (size_t i = 0; i < CUBE_COUNT(dir_kinds); i++)
		if (strncmp(name, dir_kinds[i].kind, (size_t)(dot - name)) == 0 &&
		    dir_kinds[i].kind[dot - name] == '\0')
			return dir_kinds[i].used(u, number);
	return false;
}

static int dir_slots(struct cube_cube *c, struct used *ret)
{
	int r = 0;

	*ret = (struct used){.cube = c, .slots = cube_imap_new()};
	if (ret->slots == NULL)
		return -ENOMEM;
	cube_list_each (i, &c->jobs) {
		struct cube_job_own *own = cube_job_own(cube_list_entry(i, struct cube_job, link));

		if (r == 0 && own->slot != CUBE_NO_SLOT)
			r = cube_imap_put(ret->slots, own->slot, own);
		if (r == -EEXIST) /* of a damaged journal */
			r = 0;
	}
	return r;
}

static void dir_clean(DIR *dir, const struct used *u)
{
	const struct dirent *e;

	while ((e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (e->d_name[0] != '.' && !dir_used(u, e->d_name))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
}

void cube_jobs_dir_clean(struct cube_cube *c)
{
	int fd = openat(c->dir_fd, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct used used;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return;
	}
	if (dir_slots(c, &used) == 0) /* else nothing goes: what is used is not known */
		dir_clean(dir, &used);
	cube_imap_free(used.slots);
	(void)closedir(dir);
}
