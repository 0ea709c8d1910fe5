#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives `co_await (condition ? f(…) : g(…))` a line of its own for what is awaited.

What the two calls take by value is made on one branch only, and destroyed after the await: clang keeps no record of the branch across the
suspension. Usage: tools/migrations/hoist_conditional_awaits.py   (in the root of the repository)"""
import re
import sys
sys.path.insert(0, __file__.rsplit("/", 1)[0])
from source_text import read, tracked, write  # noqa: E402

for path in tracked("*.cc", "*.h"):
    if path.startswith("tests/fuzz/corpus"):
        continue
    text = read(path)
    at, number = 0, 0
    while True:
        found = text.find("co_await (", at)
        if found < 0:
            break
        i, depth = found + len("co_await ("), 1
        question = False
        while depth:
            c = text[i]
            depth += c in "([{"
            depth -= c in ")]}"
            question = question or (c == "?" and depth == 1)
            i += 1
        inside = text[found + len("co_await ("):i - 1]
        at = i
        if not question:
            continue
        begin = max(text.rfind(";\n", 0, found) + 2, text.rfind("{\n", 0, found) + 2, text.rfind("}\n", 0, found) + 2)
        while text[begin:].lstrip(" ").startswith("//"):
            begin = text.index("\n", begin) + 1
        lead = text[begin:found]
        indent = re.match(r" *", lead).group(0)
        if re.search(r"\b(if|while|for)\b", lead):
            print(f"{path}: by hand: {lead.strip()[:60]}")
            continue
        name = "awaited" if "awaited" not in text else f"awaited{number or ''}"
        number += 1
        text = text[:begin] + f"{indent}auto {name} = {inside};\n" + lead + f"co_await std::move({name})" + text[i:]
        at = begin + len(inside) + len(lead)
    if text != read(path):
        write(path, text)
        print(path)
