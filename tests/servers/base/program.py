# SPDX-License-Identifier: Apache-2.0
"""How the programs of these servers begin and end. See README.md for what they take."""
import argparse
import asyncio
import gc
import importlib
import os
import shutil
import signal
import socket
import ssl

from base import boxes, wire


def options(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
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


async def serve(chosen, service_boxes, make):
    await service_boxes.begin()
    service = make(chosen, service_boxes)
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
    await service.clear()
    for name in os.listdir(service_boxes.top):
        shutil.rmtree(f"{service_boxes.top}/{name}")


def main(text, daemon, kind, watcher):
    """@daemon(sockets, box): what is PID 1 of a box. @kind: the service's class; @watcher: the module of its Watcher, which
    is loaded where it is asked for: it takes a while, and packages."""
    def make(chosen, service_boxes):
        return kind(service_boxes, chosen.key, chosen.limit, importlib.import_module(watcher).Watcher() if chosen.check else None)

    chosen = options(text)
    gc.freeze()
    service_boxes = boxes.Boxes(os.path.abspath(chosen.top), daemon)
    asyncio.run(serve(chosen, service_boxes, make))
