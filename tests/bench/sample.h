/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of time: taken, sorted, told. */
#ifndef CUBEFS_TESTS_BENCH_SAMPLE_H
#define CUBEFS_TESTS_BENCH_SAMPLE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t sample_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static inline int sample_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* "p50 p90 max" in microseconds, one line. Sorts. */
static inline void sample_print(uint64_t *ns, unsigned n)
{
	qsort(ns, n, sizeof(*ns), sample_compare);
	(void)printf("%.1f %.1f %.1f\n", (double)ns[n / 2] / 1e3, (double)ns[n * 9 / 10] / 1e3,
		     (double)ns[n - 1] / 1e3);
}

#endif
