# SPDX-License-Identifier: Apache-2.0
"""A web server for tests: server.py DIR PORTFILE LOG. Gives the files of DIR, parts of them too. /half/NAME
stops in the middle until DIR/go is there; /plain/NAME knows no parts; /moved/NAME and /away lead elsewhere."""
import http.server
import os
import sys
import time

TOP, PORTFILE, LOG = sys.argv[1:4]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def move(self, to):
        self.send_response(302)
        self.send_header("Location", to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def refuse(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        with open(LOG, "a", encoding="ascii") as log:
            log.write(f"{self.path} {self.headers.get('Range', '-')}\n")
        how, _, name = self.path[1:].partition("/")
        if how == "moved":
            return self.move(f"/file/{name}")
        if how == "away":
            return self.move("file:///etc/passwd")
        if how == "loop":
            return self.move("/loop/x")
        if how == "secret":
            return self.refuse(403)
        if how == "broken":
            return self.refuse(500)
        try:
            with open(f"{TOP}/{os.path.basename(name)}", "rb") as f:
                data = f.read()
        except OSError:
            return self.refuse(404)
        return self.give(how, data)

    def give(self, how, data):
        first, part = 0, self.headers.get("Range")
        if part and how != "plain":
            first = int(part.split("=")[1].split("-")[0])
        self.send_response(206 if part and how != "plain" else 200)
        if part and how != "plain":
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        half = max(first, len(data) // 2)
        self.wfile.write(data[first:half])
        self.wfile.flush()
        while how == "half" and not os.path.exists(f"{TOP}/go"):
            time.sleep(0.05)
        self.wfile.write(data[half:])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        pass


server = Server(("127.0.0.1", 0), Handler)
with open(f"{PORTFILE}.new", "w", encoding="ascii") as f:
    f.write(str(server.server_address[1]))
os.rename(f"{PORTFILE}.new", PORTFILE)
server.serve_forever()
