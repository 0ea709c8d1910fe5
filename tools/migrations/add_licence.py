#!/usr/bin/env python3
"""Puts the licence line at the head of each source file and script that has none.

Usage: tools/migrations/add_licence.py   (in the root of the repository)
"""
from source_text import SOURCE, read, tracked, write

LINE = "SPDX-License-Identifier: Apache-2.0"


def main():
    for path in tracked():
        name = path.rsplit("/", 1)[-1]
        slashes = path.endswith(SOURCE)
        hashes = path.endswith((".cmake", ".sh", ".py")) or name in ("CMakeLists.txt", "run") or (path.startswith("tools/") and "." not in name)
        if not (slashes or hashes) or "/recipes/" in path or "/corpus/" in path:
            continue
        text = read(path)
        if LINE in text[:400]:
            continue
        line = ("// " if slashes else "# ") + LINE + "\n"
        if text.startswith("#!"):
            first, rest = text.split("\n", 1)
            write(path, first + "\n" + line + rest)
        else:
            write(path, line + text)


main()
