#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A faithful E2B service for tests: both planes at one address, real processes and files in boxes (base/boxes.py).

    e2b.py --top DIR --ready FILE [--listen ADDRESS:PORT] [--key KEY] [--tls CERTIFICATE,KEY] [--limit N] [--check]

FILE gets the address (http://127.0.0.1:N) when it serves. It ends with SIGTERM, and all its sandboxes with it; DIR, an
empty directory, is left empty. README.md has the rest.
"""
import argparse
import asyncio
import gc
import os
import shutil
import signal
import socket
import ssl

from base import boxes, wire
from control.service import Service
from envd import daemon


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", required=True)
    parser.add_argument("--ready", required=True)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--key", default="e2b_0123456789abcdef0123456789abcdef01234567")
    parser.add_argument("--tls")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def tls_of(text):
    if not text:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*text.split(","))
    return context


async def main(chosen, service_boxes):
    await service_boxes.begin()
    watcher = None
    if chosen.check:
        from control.watcher import Watcher
        watcher = Watcher()
    service = Service(service_boxes, chosen.key, chosen.limit, watcher)
    host, _, port = chosen.listen.rpartition(":")
    sock = socket.create_server((host, int(port)), backlog=512)
    await wire.listen(service.serve, sock, tls_of(chosen.tls), service.faults.outlet)
    with open(f"{chosen.ready}.new", "w", encoding="ascii") as file:
        file.write(f"http{'s' if chosen.tls else ''}://{host}:{sock.getsockname()[1]}\n")
    os.rename(f"{chosen.ready}.new", chosen.ready)
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    await end.wait()
    for sandbox in list(service.sandboxes.all.values()):
        await service.sandboxes.kill(sandbox)
    for template in service.templates.all.values():
        await service.templates.remove_files(template)
    for name in ("boxes", "templates"):
        shutil.rmtree(f"{service_boxes.top}/{name}")


if __name__ == "__main__":
    OPTIONS = options()
    gc.freeze()
    BOXES = boxes.Boxes(os.path.abspath(OPTIONS.top), daemon.serve)
    asyncio.run(main(OPTIONS, BOXES))
