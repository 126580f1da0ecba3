/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines of the domain: a call under the lock at a time to come. One loop timer is behind all of them. */
#ifndef CUBEFS_CTL_ALARM_H
#define CUBEFS_CTL_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/list.h"

struct cube_domain;

/* Embedded in whoever waits; under the domain lock throughout. */
struct cube_alarm {
	struct cube_list link;            /* alone in its own list while it is off */
	uint64_t due_ns;                  /* cube_clock_mono */
	void (*fn)(struct cube_alarm *a); /* on the loop's thread, under the lock; the alarm is off again */
};

void cube_alarm_init(struct cube_alarm *a, void (*fn)(struct cube_alarm *));
/* In @ms from now; replaces an earlier setting. Any thread. */
void cube_alarm_set(struct cube_domain *d, struct cube_alarm *a, uint64_t ms);
void cube_alarm_off(struct cube_alarm *a);
bool cube_alarm_is_on(const struct cube_alarm *a);

/* For domain.c. open: before the loop runs; close: after it ended. */
struct cube_alarms;
struct cube_alarms *cube_alarms_open(struct cube_domain *d);
void cube_alarms_close(struct cube_alarms *as);

#endif
