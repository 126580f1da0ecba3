#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints, restore, fork and what differs, as of any backend (checkpoints.sh), where sandboxes are containers.
. "$(dirname "$0")/lib.sh"
require_root
require curl
start_engine docker
mkdir -p "$HOME/.config/cubefs"
{ cat "$CONF"; echo 'default = yes'; } >"$HOME/.config/cubefs/cubefs.conf"
export BACKEND=docker
. "$(dirname "$0")/checkpoints.sh"
