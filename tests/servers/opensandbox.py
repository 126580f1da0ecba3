#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A faithful OpenSandbox service for tests: the lifecycle server, and execd in every sandbox (base/boxes.py).

    opensandbox.py --top DIR --ready FILE [--listen ADDRESS:PORT] [--key KEY] [--tls CERTIFICATE,KEY] [--limit N] [--check]

It begins and ends as e2b.py does. README.md has the rest.
"""
from base import program
from execd import daemon
from lifecycle.service import Service


if __name__ == "__main__":
    program.main(__doc__, daemon.serve, Service, "lifecycle.watcher")
