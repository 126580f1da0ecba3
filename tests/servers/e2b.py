#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A faithful E2B service for tests: both planes at one address, real processes and files in boxes (base/boxes.py).

    e2b.py --top DIR --ready FILE [--listen ADDRESS:PORT] [--key KEY] [--tls CERTIFICATE,KEY] [--limit N] [--check]

FILE gets the address (http://127.0.0.1:N) when it serves. It ends with SIGTERM, and all its sandboxes with it; DIR, an
empty directory, is left empty. README.md has the rest.
"""
from base import program
from control.service import Service
from envd import daemon


if __name__ == "__main__":
    program.main(__doc__, daemon.serve, Service, "control.watcher")
