/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: vfork and exec of a program, again and again, in namespaces that are ready. Run inside a
 * sandbox.
 *
 *     bench-floor COUNT PROGRAM      prints p50 p90 max in microseconds */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/sample.h"

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	uint64_t *ns = calloc(count, sizeof(*ns));

	if (count == 0 || ns == NULL)
		return 2;
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = sample_now();
		char *const words[] = {argv[2], NULL};
		pid_t pid = vfork();

		if (pid == 0) {
			(void)execv(words[0], words);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
		ns[i] = sample_now() - start;
	}
	sample_print(ns, count);
	free(ns);
	return 0;
}
