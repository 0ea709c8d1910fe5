#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renames identifiers by a table: rename_identifiers.py TABLE

A row: scope<TAB>what<TAB>regex<TAB>replacement. Scope: git pathspecs with spaces between them, or "*". What: "code" (neither literals nor
comments), "names" (code and comments), "all" (literals too). Rows are applied in their order. Lines that begin with '#' are comments."""
import re
import sys

import source_text as src


def change(text, what, pattern, to):
    if what == "all":
        return pattern.sub(to, text)
    out = []
    for a, b, code in src.code_spans(text):
        piece = text[a:b]
        comment = piece.startswith("//") or piece.startswith("/*")
        out.append(pattern.sub(to, piece) if code or (what == "names" and comment) else piece)
    return "".join(out)


def main():
    files = {}
    with open(sys.argv[1], encoding="utf-8") as table:
        for row in table:
            row = row.rstrip("\n")
            if not row or row.startswith("#"):
                continue
            scope, what, pattern, to = row.split("\t")
            pattern = re.compile(pattern)
            paths = src.tracked(*(("*",) if scope == "*" else scope.split(" ")))
            hits = 0
            for path in paths:
                if not path.endswith(src.SOURCE):
                    continue
                text = files.get(path) or files.setdefault(path, src.read(path))
                if not pattern.search(text):
                    continue
                new = change(text, what, pattern, to)
                hits += new != text
                files[path] = new
            print(f"{hits:4} files  {pattern.pattern} → {to}" + ("" if hits else "   NOTHING"))
    for path, text in files.items():
        if text != src.read(path):
            src.write(path, text)


main()
