/* SPDX-License-Identifier: Apache-2.0 */
/* For how long it stood still: looks at the clock every quarter of a millisecond. Run inside a sandbox.
 *
 *     bench-still FILE      until there is FILE; prints the longest gap in microseconds */
#include <time.h>
#include <unistd.h>

#include "tests/bench/sample.h"

int main(int argc, char **argv)
{
	const struct timespec moment = {.tv_nsec = 250000};
	uint64_t last = sample_now(), longest = 0;

	if (argc != 2)
		return 2;
	while (access(argv[1], F_OK) < 0) {
		uint64_t now;

		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		now = sample_now();
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	(void)printf("%.1f\n", (double)longest / 1e3);
	return 0;
}
