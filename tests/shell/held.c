/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs in which the setting `hold=FILE` takes the domain's lock for good, once for each FILE: what a thread that hangs
 * under the lock is to everyone. */
#include <unistd.h>

#define cube_domain_set settings_set
#include "ctl/settings.c" /* NOLINT(bugprone-suspicious-include): all of it, with a setting more */
#undef cube_domain_set

int cube_domain_set(struct cube_domain *d, const char *key, const char *value, struct cube_err *err);

int cube_domain_set(struct cube_domain *d, const char *key, const char *value, struct cube_err *err)
{
	if (strcmp(key, "hold") != 0)
		return settings_set(d, key, value, err);
	if (unlink(value) == 0)
		for (;;)
			(void)pause();
	return 0;
}
