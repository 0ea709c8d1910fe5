#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of text/event-stream over a Unix socket, with the standard library alone: usage: sse_clients.py SOCKET COUNT [QUERY [LAST]]

Prints "connected" when every client has been greeted, then for each event that all have got "event ID MOST_MS" (how long after the event's
own time the last client had it), until its standard input ends. LAST is sent as Last-Event-ID."""
import datetime
import json
import selectors
import socket
import sys


class Client:
    def __init__(self, path, query, last):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        head = f"GET /api/v1/events/stream{query} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        if last:
            head += f"Last-Event-ID: {last}\r\n"
        self.socket.sendall((head + "\r\n").encode())
        self.socket.setblocking(False)
        self.received = b""
        self.text = ""
        self.in_body = False

    def read(self):
        """Events that have come whole: (id, kind, data). None when the server has gone."""
        data = self.socket.recv(1 << 20)
        if not data:
            return None
        self.received += data
        if not self.in_body:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return []
            head = self.received[:end].decode()
            assert " 200 " in head and "text/event-stream" in head, head
            self.received = self.received[end + 4:]
            self.in_body = True
        while (line := self.received.find(b"\r\n")) >= 0:
            size = int(self.received[:line], 16)
            if len(self.received) < line + 2 + size + 2:
                break
            self.text += self.received[line + 2:line + 2 + size].decode()
            self.received = self.received[line + 2 + size + 2:]
            if size == 0:
                return None
        events = []
        while (end := self.text.find("\n\n")) >= 0:
            fields = {}
            for line in self.text[:end].split("\n"):
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            self.text = self.text[end + 2:]
            events.append(fields)
        return events


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    query = sys.argv[3] if len(sys.argv) > 3 else ""
    last = sys.argv[4] if len(sys.argv) > 4 else ""
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    for _ in range(count):
        client = Client(path, query, last)
        selector.register(client.socket, selectors.EVENT_READ, client)
    greeted = set()
    seen = {}
    while True:
        for key, _ in selector.select():
            if key.data is None:
                if not sys.stdin.buffer.raw.read(4096):
                    return 0
                continue
            events = key.data.read()
            if events is None:
                print("gone", flush=True)
                return 1
            for fields in events:
                if "retry" in fields:
                    greeted.add(key.data)
                    if len(greeted) == count:
                        print("connected", flush=True)
                if "data" not in fields:
                    continue
                event = json.loads(fields["data"])
                assert str(event["sequence"]) == fields["id"], fields
                assert event["kind"] == fields["event"], fields
                number = event["sequence"]
                seen[number] = seen.get(number, 0) + 1
                if seen[number] == count:
                    at = datetime.datetime.fromisoformat(event["at"].replace("Z", "+00:00"))
                    late = (datetime.datetime.now(datetime.timezone.utc) - at).total_seconds() * 1000
                    print(f"event {number} {late:.0f}", flush=True)


sys.exit(main())
