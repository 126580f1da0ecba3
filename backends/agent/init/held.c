/* SPDX-License-Identifier: Apache-2.0 */
/* Open files and mappings of a process, by /proc. */
#include "backends/agent/init/held.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/agent/init/dir.h"
#include "backends/agent/init/procs.h"

#define HELD_LINE 512

/* "flags:\t0100002" is the second line. */
static bool held_writes(int dir, const char *fd)
{
	char name[64], text[256];
	const char *at;

	(void)snprintf(name, sizeof(name), "fdinfo/%s", fd);
	if (!init_procs_slurp(dir, name, text, sizeof(text)))
		return false; /* closed meanwhile */
	at = strstr(text, "flags:");
	return at == NULL || (strtoul(at + strlen("flags:"), NULL, 8) & O_ACCMODE) == O_RDWR;
}

/* By its name, since to look at the file itself may be to wait for whoever serves it. What is in /dev is of no file system
 * that is shown outside. */
static bool held_file(int dir, const char *fd)
{
	char name[64], to[16];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "fd/%s", fd);
	n = readlinkat(dir, name, to, sizeof(to));
	return n > 0 && to[0] == '/' && (n < 5 || memcmp(to, "/dev/", 5) != 0);
}

static bool held_open(int dir)
{
	int fd = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : init_dir_open(fd);
	const char *name;
	bool held = list == NULL;

	while (!held && (name = init_dir_next(list)) != NULL)
		held = name[0] != '.' && held_writes(dir, name) && held_file(dir, name);
	if (list != NULL)
		(void)closedir(list);
	return held;
}

/* "START-END rw-s OFFSET DEVICE INODE PATH"; a longer line is read in pieces, of which the first alone counts. */
static bool held_mapped(int dir)
{
	int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	bool held = f == NULL, first = true;
	char line[HELD_LINE];

	while (!held && fgets(line, sizeof(line), f) != NULL) {
		const char *perms = strchr(line, ' ');

		held = first && perms != NULL && strlen(perms) > 4 && perms[2] == 'w' && perms[4] == 's';
		first = strchr(line, '\n') != NULL;
	}
	if (f != NULL)
		(void)fclose(f);
	else if (fd >= 0)
		(void)close(fd);
	return held;
}

bool init_held(pid_t pid)
{
	int dir = init_procs_dir(pid);
	bool held = dir < 0 || held_open(dir) || held_mapped(dir);

	if (dir >= 0)
		(void)close(dir);
	return held;
}
