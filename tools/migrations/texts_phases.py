#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts of messages by a table of lines `before => after` (texts_phases.txt), in the literals of validate/, fabric/, provision/, pool/ and of all tests.
Adjacent literals count as one. Prints literals elsewhere that hold three words of a text that is gone."""
import re
import sys

from source_text import read, tracked, write

OWN = ("validate/", "fabric/", "provision/", "pool/")
STRING = r'"(?:\\.|[^"\\\n])*"'
TOKEN = re.compile(rf'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|^[ \t]*#[^\n]*|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|(?P<s>{STRING}(?:\s*{STRING})*)', re.S | re.M)


def joined(text):
    return "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', text))


def words(text):
    return re.findall(r"[\w'-]+", text)


def main():
    pairs = [line.rstrip("\n").split(" => ", 1) for line in open(sys.argv[1], encoding="utf-8") if " => " in line]
    used, gone = set(), {}
    for name in tracked("*.cc", "*.h"):
        own = name.startswith(OWN)
        if not own and not name.startswith("tests/"):
            continue

        def change(match):
            if match.group("s") is None:
                return match.group(0)
            before = after = joined(match.group("s"))
            for old, new in pairs:
                if old == "held back" and not name.startswith(("validate/", "tests/validate/")):
                    continue
                if old in after:
                    after = after.replace(old, new)
                    used.add(old)
            return match.group(0) if after == before else f'"{after}"'

        before = read(name)
        after = TOKEN.sub(change, before)
        if after != before:
            write(name, after)
    for old, new in pairs:
        if old not in used:
            print("unused:", old)
        w = words(old)
        fresh = words(new)
        kept = {tuple(fresh[i:i + 3]) for i in range(len(fresh))}
        for i in range(max(1, len(w) - 2)):
            if len(w) >= 3 and tuple(w[i:i + 3]) not in kept:
                gone[tuple(w[i:i + 3])] = old
    for name in tracked("*.cc", "*.h", "*.js", "*.py"):
        if name.startswith("tools/migrations"):
            continue
        text = read(name)
        for match in TOKEN.finditer(text):
            if match.group("s") is None:
                continue
            w = words(joined(match.group("s")))
            hit = next((tuple(w[i:i + 3]) for i in range(len(w) - 2) if tuple(w[i:i + 3]) in gone), None)
            if hit:
                print(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {joined(match.group('s'))[:110]}   << {' '.join(hit)}")


main()
