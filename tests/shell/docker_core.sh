#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a sandbox of any backend does, where it is a container: tests of the core, each with a daemon of its own whose
# sandboxes are an engine's unless they say otherwise.
. "$(dirname "$0")/lib.sh"
require_root
require curl
start_engine docker
mkdir -p "$HOME/.config/cubefs"
{ cat "$CONF"; echo 'default = yes'; } >"$HOME/.config/cubefs/cubefs.conf"
for test in sessions channel interrupt links; do
	mkdir "$WORK/$test"
	CUBEFS_TEST_DIR=$WORK/$test bash "$(dirname "$0")/$test.sh" || fail "$test.sh: $?"
	[ "$(boxes)" -eq 0 ] || fail "$test.sh leaves a container"
done
