#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archive_server.py FOLDER: a web server of a folder on loopback, whose port is the first line of its output; a proxy for http as well.

/moved/X leads to /X. Of /cut/X half arrives before the connection ends. What is asked for by way of the proxy is in the folder's file
"by-proxy", and everything in "asked", a line each: METHOD PATH, "ranged" where a part was asked for."""
import http.server
import os
import sys
import urllib.request
from http import HTTPStatus


class Archive(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def note(self, name):
        with open(os.path.join(self.directory, name), "a", encoding="utf-8") as file:
            file.write(f"{self.command} {self.path}{' ranged' if self.headers.get('Range') else ''}\n")

    def do_GET(self):
        self.note("asked")
        if self.path.startswith("http://"):
            self.note("by-proxy")
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.path) as answer:
                content = answer.read()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        elif self.path.startswith("/moved/"):
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/cut/"):
            with open(os.path.join(self.directory, self.path.removeprefix("/cut/")), "rb") as file:
                content = file.read()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:len(content) // 2])
            self.close_connection = True
        else:
            super().do_GET()


folder = sys.argv[1]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Archive(*words, directory=folder))
print(server.server_address[1], flush=True)
server.serve_forever()
