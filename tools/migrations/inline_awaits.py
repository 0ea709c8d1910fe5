#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites `auto x = f(…); … co_await std::move(x)` to `co_await f(…)` where x is used only there.

GCC 12 destroyed some temporaries of a co_await expression twice, so every awaited operation had a line of its own.
Usage: tools/migrations/inline_awaits.py FILE…   (rewrites in place, prints how many pairs it found)
A pair is left as it is when the operation's name is used again in its block, when a comment stands between, or when
the awaiting statement is a macro and the expression has a comma that parentheses do not protect.
"""
import re
import sys

DECLARATION = re.compile(r"(?P<indent>^[ \t]*)auto (?P<name>\w+) = ", re.M)
OPEN, CLOSE = "([{", ")]}"


def skip_literal(text, i):
    """The index behind the string, character or comment that starts at i; i itself when none does."""
    if text.startswith("//", i):
        end = text.find("\n", i)
        return len(text) if end < 0 else end
    if text.startswith("/*", i):
        return text.find("*/", i) + 2
    raw = re.match(r'R"([^(]*)\(', text[i:i + 20])
    if raw:
        return text.find(")" + raw.group(1) + '"', i) + len(raw.group(1)) + 2
    if text[i] == '"' or (text[i] == "'" and not (text[i - 1].isalnum() or text[i - 1] == "_")):
        quote, i = text[i], i + 1
        while text[i] != quote:
            i += 2 if text[i] == "\\" else 1
        return i + 1
    return i


def scan(text, start, stop_at):
    """Index of the first character of stop_at at bracket depth 0 from start on; -1 when the block ends before."""
    depth, i = 0, start
    while i < len(text):
        after = skip_literal(text, i)
        if after != i:
            i = after
            continue
        c = text[i]
        if depth == 0 and c in stop_at:
            return i
        if c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
            if depth < 0:
                return -1
        i += 1
    return -1


def block_end(text, start):
    depth, i = 0, start
    while i < len(text):
        after = skip_literal(text, i)
        if after != i:
            i = after
            continue
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth < 0:
                return i
        i += 1
    return len(text)


def commas_unprotected(expression):
    depth, i = 0, 0
    while i < len(expression):
        after = skip_literal(expression, i)
        if after != i:
            i = after
            continue
        if expression[i] == "(":
            depth += 1
        elif expression[i] == ")":
            depth -= 1
        elif expression[i] == "," and depth == 0:
            return True
        i += 1
    return False


def needs_parentheses(expression):
    i = 0
    return any(scan(expression, i, "?|&") >= 0 and op in expression for op in ("||", "&&", "?"))


def head_of_next(text, start):
    """The next statement up to its `;`, or up to the `{` of its body."""
    i = start
    while i < len(text) and text[i] in " \t\n":
        i += 1
    if text.startswith("//", i) or text.startswith("/*", i):
        return None
    end = scan(text, i, ";{")
    return None if end < 0 else (i, end)


def rewrite(text):
    count, position = 0, 0
    while True:
        found = DECLARATION.search(text, position)
        if not found:
            return text, count
        position = found.end()
        name = found.group("name")
        end = scan(text, found.end(), ";")
        if end < 0:
            continue
        expression = text[found.end():end]
        head = head_of_next(text, end + 1)
        if not head:
            continue
        statement = text[head[0]:head[1]]
        if re.match(r"(for|while|do)\b", statement):
            continue
        use = "co_await std::move(%s)" % name
        words = re.findall(r"\b%s\b" % name, statement)
        if statement.count(use) != 1 or len(words) != (2 if re.match(r"(const )?auto %s = " % name, statement) else 1):
            continue
        rest = text[head[1]:block_end(text, head[1])]
        again = re.search(r"\b%s\b" % name, rest)
        redeclared = re.match(r"(const )?auto&? %s = " % name, statement)
        if again and not redeclared and not re.search(r"(auto|const auto|auto&|const auto&) $", rest[:again.start()]):
            continue
        macro = re.match(r"(CO_TRY|CO_TRY_OK|TRY|TRY_OK|ASSERT_\w+|EXPECT_\w+)\b", statement)
        if macro and commas_unprotected(expression):
            continue
        awaited = "(%s)" % expression if needs_parentheses(expression) else expression
        if "\n" in awaited and "co_await" in awaited and "[" not in awaited:
            continue
        indent = found.group("indent")
        new = indent + statement.replace(use, "co_await " + awaited)
        text = text[:found.start()] + new + text[head[1]:]
        position = found.start()  # what was written may be the first half of another pair
        count += 1


def main():
    total = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        new, count = rewrite(text)
        total += count
        if count:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    print(total, "pairs")


if __name__ == "__main__":
    main()
