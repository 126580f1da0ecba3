#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Between cubefs and a container engine, for faults: peer.py SOCKET ENGINE-SOCKET RULES LOG

Each request goes to the engine, and its answer back, unless a line of the file RULES says otherwise, which is read anew
each time: METHOD PATH-REGEX ACTION [ARGUMENT]. LOG gets a line for each request.

    hang           no answer, for as long as the other side has patience
    drop           the connection ends at once
    lose           the engine does it, and its answer is lost
    cut BYTES      the answer ends there
    say TEXT       status 200 and this
    refuse STATUS  and a sentence
    run COMMAND    by the shell, before the engine gets it
    after COMMAND  the same, when the engine has answered; the answer is lost
"""
import re
import socket
import subprocess
import sys
import threading

LISTEN, ENGINE, RULES, LOG = sys.argv[1:5]
lock = threading.Lock()


def rule_for(method, path):
    with open(RULES, encoding="utf-8") as rules:
        for line in rules:
            words = line.rstrip("\n").split(" ", 3)
            if len(words) > 2 and re.fullmatch(words[0], method) and re.search(words[1], path):
                return words[2], words[3] if len(words) > 3 else ""
    return "", ""


def read_request(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(65536)
        if not more:
            return None, None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    size = re.search(rb"(?i)^content-length: *(\d+)", head, re.M)
    chunked = re.search(rb"(?i)^transfer-encoding: *chunked", head, re.M)
    while (size and len(body) < int(size[1])) or (chunked and not body.endswith(b"0\r\n\r\n")):
        more = conn.recv(65536)
        if not more:
            return None, None
        body += more
    return head, body


def forward(conn, head, body, limit):
    """The engine's answer to @conn, as far as @limit; None: all of it, False: none of it."""
    head = re.sub(rb"(?im)^connection:.*\r\n", b"", head + b"\r\n")
    with socket.socket(socket.AF_UNIX) as engine:
        try:
            engine.connect(ENGINE)
        except OSError:
            return
        engine.sendall(head + b"Connection: close\r\n\r\n" + body)
        sent = 0
        while True:
            try:
                data = engine.recv(65536)
            except OSError:
                return
            if not data:
                return
            if limit is not False:
                conn.sendall(data if limit is None else data[: max(0, limit - sent)])
            sent += len(data)


def answer(conn, status, body):
    text = body.encode()
    conn.sendall(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(text)) + text)


def act(conn, head, body, action, arg):
    if action == "hang":
        conn.recv(1)
    elif action == "lose":
        forward(conn, head, body, False)
    elif action == "cut":
        forward(conn, head, body, int(arg))
    elif action == "say":
        answer(conn, 200, arg)
    elif action == "refuse":
        answer(conn, int(arg), '{"message": "refused by the test"}')
    elif action == "run":
        subprocess.run(arg, shell=True, check=False)
        forward(conn, head, body, None)
    elif action == "after":
        forward(conn, head, body, False)
        subprocess.run(arg, shell=True, check=False)
    elif action != "drop":
        forward(conn, head, body, None)


def serve(conn):
    with conn:
        try:
            head, body = read_request(conn)
            if head is None:
                return
            method, path = head.split(b" ", 2)[:2]
            method, path = method.decode(), path.decode()
            with lock, open(LOG, "a", encoding="utf-8") as log:
                log.write(f"{method} {path}\n")
            act(conn, head, body, *rule_for(method, path))
        except OSError:
            pass


with socket.socket(socket.AF_UNIX) as door:
    door.bind(LISTEN)
    door.listen(64)
    while True:
        threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
