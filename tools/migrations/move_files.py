#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Moves files as a table says (git mv; moves.txt if none is named), and follows them in includes, CMake files, scripts and documents.

Usage: tools/migrations/move_files.py [TABLE]   (in the root of the repository)
A test of a file that moves goes with it: tests/X/Y_test.cc follows X/Y. CMake files of new folders are written by hand.
"""
import os
import posixpath
import re
import subprocess
import sys

from source_text import read, tracked, write

HERE = os.path.dirname(os.path.abspath(__file__))


def rules():
    for line in read(os.path.join(HERE, sys.argv[1] if len(sys.argv) > 1 else "moves.txt")).splitlines():
        if line and not line.startswith("#"):
            old, new = line.split(" -> ")
            yield old, new


def target(path, table):
    stem, suffix = posixpath.splitext(path)
    for old, new in table:
        if old.endswith("/"):
            if path.startswith(old):
                return new + path[len(old):]
        elif stem == old and suffix in (".h", ".cc", ".cu"):
            return new + suffix
    return path


def main():
    table = list(rules())
    files = tracked()
    mapping = {f: target(f, table) for f in files}
    for path in files:  # tests follow what they test
        match = re.fullmatch(r"tests/(.+)_test\.cc", path)
        if match and mapping[path] == path or (match and "/" in match.group(1)):
            for suffix in (".h", ".cc"):
                source = match.group(1) + suffix
                if source in mapping and mapping[source] != source:
                    mapping[path] = "tests/" + posixpath.splitext(mapping[source])[0] + "_test.cc"
                    break
    moved = {a: b for a, b in mapping.items() if a != b}
    seen = {}
    for a, b in mapping.items():
        if b in seen:
            raise SystemExit(f"{a} and {seen[b]} both become {b}")
        seen[b] = a
    for a, b in moved.items():
        os.makedirs(os.path.dirname(b) or ".", exist_ok=True)
        subprocess.run(["git", "mv", a, b], check=True)

    names = {a: b for a, b in moved.items()}
    old = "|".join(re.escape(a) for a in sorted(names, key=len, reverse=True))
    pattern = re.compile(r"(?:(?<![\w/.-])|(?<=\$\{PROJECT_SOURCE_DIR\}/))(" + old + r")(?!\w)")
    for path in tracked():
        if path.startswith("tools/migrations/") or path.startswith("tests/fuzz/corpus/"):
            continue
        try:
            text = read(path)
        except IsADirectoryError:
            continue
        new = full_includes(text, path, mapping)
        new = pattern.sub(lambda m: names[m.group(1)], new)
        if posixpath.basename(path) == "CMakeLists.txt":
            new = follow_cmake(new, path, mapping)
        if new != text:
            write(path, new)


def full_includes(text, path, mapping):
    """A file that left its folder names the headers of that folder in full."""
    before = {b: a for a, b in mapping.items()}.get(path, path)
    old = posixpath.dirname(before)
    if old == posixpath.dirname(path):
        return text
    full = lambda match: f'#include "{old}/{match.group(1)}"' if f"{old}/{match.group(1)}" in mapping else match.group(0)
    return re.sub(r'#include "([\w.]+)"', full, text)


def follow_cmake(text, path, mapping):
    """Sources named relative to the CMake file."""
    here = posixpath.dirname(path)
    before = {b: a for a, b in mapping.items()}
    old_here = posixpath.dirname(before.get(path, path))

    def one(match):
        token = match.group(0)
        full = posixpath.normpath(posixpath.join(old_here, token))
        if full not in mapping:
            return token
        new = mapping[full]
        if new == full and here == old_here:
            return token
        return posixpath.relpath(new, here) if new.startswith(here + "/") or not here else "${PROJECT_SOURCE_DIR}/" + new

    return re.sub(r"(?<![\w/$}.-])[\w./-]+\.(?:cc|h|cu)\b", one, text)


main()
