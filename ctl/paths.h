/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are unless said otherwise: state, configuration. And the configuration file itself. */
#ifndef CUBEFS_CTL_PATHS_H
#define CUBEFS_CTL_PATHS_H

#include "backends/base/conf.h"
#include "backends/base/err.h"

/* The state directory: @given (--state) if not NULL, else CUBEFS_STATE_DIR, else /var/lib/cubefs for root and
 * $XDG_STATE_HOME/cubefs (~/.local/state/cubefs) for others. Made absolute, not created. *ret is the caller's. */
int cube_paths_state(const char *given, char **ret, struct cube_err *err);

/* Reads the configuration: @given (--config; must exist), else the first that is there of
 * $XDG_CONFIG_HOME/cubefs/cubefs.conf (~/.config/...) and /etc/cubefs/cubefs.conf, else an empty one. */
int cube_paths_config(const char *given, struct cube_conf **ret, struct cube_err *err);

#endif
