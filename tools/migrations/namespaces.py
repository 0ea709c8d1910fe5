#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A namespace is its folder: after move_files.py, what moved to another top folder gets that folder's namespace.

Usage: tools/migrations/namespaces.py   (in the root of the repository)
Names that a moved header declares are qualified wherever they are used outside their folder; argument-dependent lookup finds the rest.
"""
import re

from source_text import SOURCE, read, replace_in_code, tracked, write

WHOLE = {"keep": "monitor", "discover": "discovery", "serve": "gateway"}  # folders that moved as they were
# new namespace: (namespace before, its headers)
PARTS = {
    "wire": ("agent", r"wire/[^/]+\.h"),
    "gateway": ("agent", r"gateway/(?!http_listeners)[^/]+\.h"),
    "app": ("cli", r"app/[^/]+\.h"),
    "async": (None, r"base/async/(bell|coordinate)\.h"),
}
OVERLOADED = {"toJson", "toString", "describe", "fits", "report", "start"}  # found by their arguments


def declared(path):
    text = read(path)
    names = set()
    bare = []
    replace_in_code(text, lambda piece: bare.append(piece) or piece)
    for line in re.sub(r"\n[ \t]+", "\n    ", "".join(bare)).splitlines():
        if line.startswith((" ", "#", "}", "namespace", ")")):
            continue
        match = re.match(r"(?:template <[^>]*> )?(?:struct|class|enum class|enum|using) (\w+)", line)
        if match:
            names.add(match.group(1))
        for match in re.finditer(r"\b(k[A-Z]\w*)\b(?= =|\{|$| = )", line):
            if "constexpr" in line or "const" in line:
                names.add(match.group(1))
        for match in re.finditer(r"(?:^|; +)(?:inline |constexpr |\[\[\w+\]\] )*[\w:<>,\s*&]+?[\s&*>](\w+)\(", line):
            names.add(match.group(1))
    return names - OVERLOADED - {"fail", "operator", "ExitCode"}


def main():
    sources = [f for f in tracked() if f.endswith(SOURCE)]
    groups = {}
    for new, (old, pattern) in PARTS.items():
        names = set()
        for path in sources:
            if re.fullmatch(pattern, path):
                names |= declared(path)
        groups[new] = (old, names)
        print(new, " ".join(sorted(names)))
    for path in sources:
        text = read(path)
        new_text = migrate(path, text, groups)
        if new_text != text:
            write(path, new_text)


def own(path):
    for new, (_, pattern) in PARTS.items():
        folder = pattern.split("/[")[0].split("/(")[0]
        if new == "async":
            if re.fullmatch(r"base/async/(bell|coordinate)\.(h|cc)", path):
                return new
        elif path.startswith(folder + "/") and not path.startswith("wire/links/"):
            return new
    return None


def migrate(path, text, groups):
    mine = own(path)
    before = re.findall(r"^(?:namespace|using namespace) muster::(\w+)", text, re.M)

    def change(piece):
        for old, new in WHOLE.items():
            piece = re.sub(rf"(?<![\w:.>])(muster::)?{old}::(?=\w)", lambda m: (m.group(1) or "") + new + "::", piece)
            piece = re.sub(rf"(namespace muster::){old}\b", rf"\1{new}", piece)
        if mine:
            old = "lifecycle" if path.startswith("base/async/coordinate") else PARTS[mine][0] or "agent"
            piece = re.sub(rf"namespace muster::{old}\b", f"namespace muster::{mine}", piece)
        for new, (old, names) in groups.items():
            if not names:
                continue
            any_name = "|".join(sorted(names, key=len, reverse=True))
            olds = [old] if old else ["agent", "lifecycle"]
            for o in olds:
                piece = re.sub(rf"(?<![\w:.>])(muster::)?{o}::({any_name})\b", lambda m: (m.group(1) or "") + (f"{new}::" if mine != new else "") + m.group(2), piece)
                if mine != new and (o in before):
                    piece = re.sub(rf"(?<![\w:.])(?<!->)(?<!class )(?<!struct )(?<!~)({any_name})\b(?!\s*=(?!=))", rf"{new}::\1", piece)
        return piece

    text = replace_in_code(text, change)
    # The comment at a namespace's end says what its beginning says.
    opened = re.findall(r"^namespace (muster[\w:]*) \{", text, re.M)
    if len(set(opened)) == 1:
        text = re.sub(r"^\}  // namespace muster\S*", "}  // namespace " + opened[0], text, flags=re.M)
    return text


main()
