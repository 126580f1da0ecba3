/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsing of numbers. */
#include "backends/base/num.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "backends/base/macros.h"

/* Reads digits of @base from *@s on and moves *@s behind them. -EINVAL: none; -ERANGE: above @max (the
 * digits are read all the same, so that a wrong character behind them is still found by the caller). */
static int num_digits(const char **s, unsigned base, uint64_t max, uint64_t *ret)
{
	const char *start = *s;
	uint64_t value = 0;
	int r = 0;

	for (; **s >= '0' && **s < (char)('0' + base); (*s)++) {
		unsigned digit = (unsigned)(**s - '0');

		if (r < 0 || digit > max || value > (max - digit) / base)
			r = -ERANGE;
		else
			value = value * base + digit;
	}
	if (*s == start)
		return -EINVAL;
	*ret = value;
	return r;
}

int cube_num_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	int r = num_digits(&s, 10, max, &value);

	if (r == -EINVAL || *s != '\0')
		return -EINVAL;
	if (r == 0)
		*ret = value;
	return r;
}

int cube_num_size(const char *s, uint64_t *ret)
{
	static const char suffixes[] = "KMGTkmgt";
	uint64_t value = 0;
	unsigned shift = 0;
	int r = num_digits(&s, 10, UINT64_MAX, &value);

	if (r == -EINVAL)
		return r;
	if (*s != '\0') {
		const char *found = strchr(suffixes, *s);

		if (found == NULL || s[1] != '\0')
			return -EINVAL;
		shift = 10 * (unsigned)((found - suffixes) % 4 + 1);
	}
	if (r < 0 || value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = value << shift;
	return 0;
}

int cube_num_milli(const char *s, uint64_t *ret)
{
	uint64_t whole = 0, fraction = 0;
	int r = num_digits(&s, 10, UINT64_MAX / 1000 - 1, &whole);

	if (r == -EINVAL)
		return r;
	if (*s == '.') {
		const char *start = ++s;

		if (num_digits(&s, 10, 999, &fraction) < 0 || s - start > 3)
			return -EINVAL;
		for (long digits = s - start; digits < 3; digits++)
			fraction *= 10;
	}
	if (*s != '\0')
		return -EINVAL;
	if (r == 0)
		*ret = whole * 1000 + fraction;
	return r;
}

int cube_num_mode(const char *s, unsigned *ret)
{
	uint64_t value = 0;
	int r = num_digits(&s, 8, 07777, &value);

	if (r == -EINVAL || *s != '\0')
		return -EINVAL;
	if (r == 0)
		*ret = (unsigned)value;
	return r;
}

int cube_num_bool(const char *s, int *ret)
{
	static const struct {
		const char *word;
		int value;
	} words[] = {
		{"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}, {"on", 1}, {"off", 0}, {"1", 1}, {"0", 0},
	};

	for (size_t i = 0; i < CUBE_COUNT(words); i++) {
		if (strcmp(s, words[i].word) == 0) {
			*ret = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}
