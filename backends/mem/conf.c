/* SPDX-License-Identifier: Apache-2.0 */
/* The section [backend NAME] of an instance of kind `mem`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/conf.h"
#include "backends/base/num.h"
#include "backends/decor/fault.h"
#include "backends/mem/mem_priv.h"

/* Those of every backend that make sense here, then its own. */
static const char *const known[] = {
	"kind", "default", "lifetime", "tags",  "suffix", "max_sandboxes",
	"caps", "fail",    "lose",     "delay", NULL,
};

static const char *const fault_keys[] = {"fail", "lose", "delay"};

const char *mem_conf_key(size_t n)
{
	return n < CUBE_COUNT(known) ? known[n] : NULL;
}

int mem_conf_check(const struct cube_backend_env *env, struct cube_err *err)
{
	return env->conf != NULL ? cube_conf_check(env->conf, known, err) : 0;
}

static uint32_t cap_bit(const char *name, size_t len)
{
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		const char *cap = cube_cap_name(i);

		if (strncmp(cap, name, len) == 0 && cap[len] == '\0')
			return 1u << i;
	}
	return 0;
}

/* One word of `caps=`: NAME has it, -NAME has it not. The first without a minus clears what is there. */
static int caps_word(uint32_t *caps, bool *listed, const char *word, size_t len, struct cube_err *err)
{
	bool minus = word[0] == '-';
	uint32_t bit = cap_bit(word + minus, len - minus);

	if (bit == 0)
		return cube_fail(err, -EINVAL, "caps: there is no capability '%.*s'", (int)(len - minus),
				 word + minus);
	if ((cube_backend_mem.caps & bit) == 0)
		return cube_fail(err, -EINVAL, "caps: kind mem never has '%.*s'", (int)(len - minus),
				 word + minus);
	if (minus) {
		*caps &= ~bit;
		return 0;
	}
	*caps = (*listed ? *caps : 0) | bit;
	*listed = true;
	return 0;
}

static int caps_parse(const char *text, uint32_t *ret, struct cube_err *err)
{
	uint32_t caps = cube_backend_mem.caps;
	bool listed = false;

	for (const char *at = text; *at != '\0';) {
		size_t n = strcspn(at, ", \t");
		int r = n > 0 ? caps_word(&caps, &listed, at, n, err) : 0;

		if (r < 0)
			return r;
		at += n + (at[n] != '\0' ? 1 : 0);
	}
	*ret = caps;
	return 0;
}

int mem_conf_apply(struct mem *m, const struct cube_conf_section *conf, struct cube_err *err)
{
	const char *caps = cube_conf_get(conf, "caps");
	const char *max = cube_conf_get(conf, "max_sandboxes");
	uint64_t n = 0;
	int r = 0;

	m->base.caps = cube_backend_mem.caps;
	if (caps != NULL)
		r = caps_parse(caps, &m->base.caps, err);
	if (r < 0)
		return r;
	if (max != NULL && cube_num_u64(max, UINT32_MAX, &n) < 0)
		return cube_fail(err, -EINVAL, "max_sandboxes: '%s' is not a number", max);
	m->max = (unsigned)n;
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		if ((cube_backend_mem.caps & ~m->base.caps & (1u << i)) != 0)
			(void)snprintf(m->base.missing[i], sizeof(m->base.missing[i]),
				       "switched off by caps in the configuration");
	}
	return 0;
}

static bool wants_faults(const struct cube_conf_section *conf)
{
	for (size_t i = 0; i < CUBE_COUNT(fault_keys); i++) {
		if (cube_conf_get(conf, fault_keys[i]) != NULL)
			return true;
	}
	return false;
}

static int add_faults(struct cube_fault *f, const struct cube_conf_section *conf, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(fault_keys); i++) {
		const char *value = cube_conf_get(conf, fault_keys[i]);
		int r = value != NULL ? cube_fault_parse(f, fault_keys[i], value, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int mem_conf_faults(struct cube_backend **b, const struct cube_conf_section *conf, struct cube_err *err)
{
	struct cube_backend *wrapped;
	struct cube_fault *f;
	int r;

	if (!wants_faults(conf))
		return 0;
	r = cube_fault_wrap(*b, &wrapped, &f, err);
	if (r < 0)
		return r;
	*b = wrapped; /* it owns the one inside now, also when a rule is none */
	return add_faults(f, conf, err);
}
