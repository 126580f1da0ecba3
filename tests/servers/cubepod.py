#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A placeholder for CubePod, for tests: E2B's face, and what else is known or assumed of it (control/cubepod.py says which).

    cubepod.py --top DIR --ready FILE [--listen ADDRESS:PORT] [--key KEY] [--tls CERTIFICATE,KEY] [--limit N]

It begins and ends as e2b.py does. README.md has the rest.
"""
from base import program
from control.cubepod import Service
from envd import daemon

if __name__ == "__main__":
    program.main(__doc__, daemon.serve, Service, "control.watcher")
