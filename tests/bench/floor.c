/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: vfork and exec of a program, again and again, in namespaces that are ready. Run inside a
 * sandbox.
 *
 *     bench-floor COUNT PROGRAM      prints p50 p90 max in microseconds */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/sample.h"

static uint64_t floor_one(char *program)
{
	char *const words[] = {program, NULL};
	uint64_t start = sample_now();
	pid_t pid = vfork();

	if (pid == 0) {
		(void)execv(program, words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(1);
	return sample_now() - start;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	uint64_t *ns = calloc(count, sizeof(*ns));

	if (count == 0 || ns == NULL)
		return 2;
	for (unsigned i = 0; i < count; i++)
		ns[i] = floor_one(argv[2]);
	sample_print(ns, count);
	free(ns);
	return 0;
}
