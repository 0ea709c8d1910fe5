#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages.py ROOT PAGE: what the page quotes as muster's own words (first column of its tables, in backticks) is in the sources. "…" stands
for what differs."""
import os
import re
import subprocess
import sys

root, page = sys.argv[1], sys.argv[2]
files = subprocess.run(["find", *[os.path.join(root, d) for d in ("app", "base", "bmc", "cli", "fabric", "firmware", "gateway", "inventory", "lifecycle", "monitor", "pool", "provision", "validate", "agent")],
                        "-name", "*.cc", "-o", "-name", "*.h", "-o", "-name", "grub.cfg", "-o", "-name", "*.sh"], capture_output=True, text=True, check=True).stdout.split()
files.append(os.path.join(root, "packaging/systemd/own-state"))
# Adjacent literals are one, as the compiler has it.
sources = "\n".join(re.sub(r'"\s*\n?\s*"', "", open(file, encoding="utf-8", errors="replace").read()) for file in files)
sources = re.sub(r"\{[^{}\n]*\}|\$\w+|\$\{[^{}\n]*\}", "\0", sources)
bad = seen = 0
for number, line in enumerate(open(page, encoding="utf-8"), 1):
    if not line.startswith("| `"):
        continue
    quoted = re.match(r"\| `([^`]+)`", line).group(1)
    seen += 1
    position = 0
    parts = [part.strip() for part in quoted.split("…") if part.strip()]
    for part in parts:
        if part not in sources:
            bad = 1
            print(f"{page}:{number}: no source says \"{part}\"")
if "the moon is not declared" in sources:
    bad = 1
print(f"{seen} messages")
sys.exit(bad if seen >= 15 else 1)
