/* SPDX-License-Identifier: Apache-2.0 */
/* Time and its text form. */
#include "backends/base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

static const _Atomic uint64_t *_Atomic clock_faked;

void cube_clock_fake(const _Atomic uint64_t *fake_ns)
{
	atomic_store(&clock_faked, fake_ns);
}

static uint64_t clock_read(clockid_t id)
{
	const _Atomic uint64_t *fake = atomic_load(&clock_faked);
	struct timespec ts = {0};

	if (fake != NULL)
		return atomic_load(fake);
	(void)clock_gettime(id, &ts); /* cannot fail for these clocks */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t cube_clock_mono(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

uint64_t cube_clock_wall(void)
{
	return clock_read(CLOCK_REALTIME);
}

const char *cube_clock_text(uint64_t wall_ns, char out[CUBE_TIME_TEXT])
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	unsigned millis = (unsigned)(wall_ns % NS_PER_S / 1000000);
	struct tm tm;
	size_t len;

	if (wall_ns == 0 || gmtime_r(&seconds, &tm) == NULL) {
		(void)snprintf(out, CUBE_TIME_TEXT, "-");
		return out;
	}
	len = strftime(out, CUBE_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + len, CUBE_TIME_TEXT - len, ".%03uZ", millis);
	return out;
}

/* Follows @shape: '0' stands for a digit, anything else for itself. */
static int clock_shape_ok(const char *s, const char *shape)
{
	for (; *shape != '\0'; s++, shape++) {
		if (*shape == '0' ? (*s < '0' || *s > '9') : *s != *shape)
			return 0;
	}
	return 1;
}

static int clock_number(const char *s, int digits)
{
	int value = 0;

	while (digits-- > 0)
		value = value * 10 + (*s++ - '0');
	return value;
}

/* ".123456789Z" or "Z" with 1 to 9 digits, as nanoseconds; -1 for anything else. */
static long clock_fraction(const char *s)
{
	long ns = 0, unit = 100000000;

	if (*s == '.') {
		if (s[1] == 'Z')
			return -1;
		for (s++; *s >= '0' && *s <= '9' && unit > 0; s++, unit /= 10)
			ns += unit * (*s - '0');
	}
	return strcmp(s, "Z") == 0 ? ns : -1;
}

int cube_clock_parse(const char *s, uint64_t *ret_wall_ns)
{
	static const char shape[] = "0000-00-00T00:00:00";
	struct tm tm = {0}, same;
	time_t seconds;
	long ns;

	if (strcmp(s, "-") == 0) {
		*ret_wall_ns = 0;
		return 0;
	}
	if (!clock_shape_ok(s, shape))
		return -EINVAL;
	ns = clock_fraction(s + strlen(shape));
	tm.tm_year = clock_number(s, 4) - 1900;
	tm.tm_mon = clock_number(s + 5, 2) - 1;
	tm.tm_mday = clock_number(s + 8, 2);
	tm.tm_hour = clock_number(s + 11, 2);
	tm.tm_min = clock_number(s + 14, 2);
	tm.tm_sec = clock_number(s + 17, 2);
	same = tm;
	seconds = timegm(&same);
	/* timegm takes the 31st of February for the 3rd of March: what it changed was not a date */
	if (ns < 0 || seconds < 0 || (uint64_t)seconds > UINT64_MAX / NS_PER_S - 1 ||
	    same.tm_mon != tm.tm_mon || same.tm_hour != tm.tm_hour || same.tm_min != tm.tm_min ||
	    same.tm_sec != tm.tm_sec)
		return -EINVAL;
	*ret_wall_ns = (uint64_t)seconds * NS_PER_S + (uint64_t)ns;
	return 0;
}
