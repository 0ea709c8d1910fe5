# SPDX-License-Identifier: Apache-2.0
"""What the migrations share: C++ text without its literals and comments, and the files of the tree."""
import re
import subprocess

SOURCE = (".cc", ".h", ".cu")


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", *patterns], capture_output=True, text=True, check=True).stdout
    return [name for name in out.split("\0") if name]


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def code_spans(text):
    """(start, end, is_code) over the whole text: literals, comments and #include lines are no code."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#include[^\n]*', re.S | re.M)
    at = 0
    for match in token.finditer(text):
        if match.start() > at:
            yield at, match.start(), True
        yield match.start(), match.end(), False
        at = match.end()
    if at < len(text):
        yield at, len(text), True


def replace_in_code(text, change):
    """change(piece) over the code alone."""
    return "".join(change(text[a:b]) if code else text[a:b] for a, b, code in code_spans(text))
