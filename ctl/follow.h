/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: listening to a backend that tells by itself what becomes of its sandboxes, by whosever hand. */
#ifndef CUBEFS_CTL_FOLLOW_H
#define CUBEFS_CTL_FOLLOW_H

#include "ctl/domain.h"

struct cube_follow;

/* Begins, and goes on until it is cancelled: what was cut off is taken up again, ever more seldom. Nothing where the
 * backend does not tell. Under the lock. -ENOMEM. */
int cube_follow_begin(struct cube_service *s, struct cube_err *err);
/* Under the lock; it may still be on its way out. */
void cube_follow_cancel(struct cube_service *s);
/* Nothing of it is under way. */
void cube_follow_free(struct cube_service *s);

#endif
