#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fragments.py MUSTER FILE…: every fragment of an inventory (```yaml) in these pages is one that `muster inventory check` takes, in a frame
that brings the sections that it lacks. Left to the reader of a page: what … stands for, files that a site has and this machine has not, and
names that another part of an inventory declares."""
import json
import os
import re
import subprocess
import sys
import tempfile

FRAME = {
    "cluster": "cluster: {name: small}\n",
    "networks": "networks:\n  provisioning: {cidr: 10.20.0.0/16, controller: 10.20.0.1, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}\n",
    "credentials": "credentials:\n  bmc: {username: admin, password: {file: secrets/bmc}}\n",
    "images": "images:\n  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}\n",
    "profiles": "profiles:\n  gpu-node: {expect: {gpus: 8}, image: bookworm}\n",
    "nodes": 'nodes:\n  - {names: gpu001, profile: gpu-node, mac: "52:54:00:20:00:01", address: 10.20.1.1, bmc: "https://10.20.250.1", rack: of-the-frame, unit: 10}\n',
}
# Of another part of the inventory, or of the site's disk.
ELSEWHERE = re.compile(r'"…|"<|is not declared under|does not exist|cannot be read|cannot (read|open) |the key "image" is missing|the key "bmc" is missing|is no node|is not on the fabric')
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.S | re.M)


def fragments(path):
    text = open(path, encoding="utf-8").read()
    for match in FENCE.finditer(text):
        yield text[:match.start()].count("\n") + 2, match.group(1)


def check(muster, fragment):
    sections = re.findall(r"^([A-Za-z_]+):", fragment, re.M)
    if not sections:
        return ["begins with no section of an inventory: say what it belongs to"]
    if "apiVersion" in sections:  # for kubectl
        return []
    # The settings of a rollout are not part of an inventory; the change beside them is.
    fragment = re.sub(r"^rollout:.*?(?=^\S|\Z)", "", fragment, flags=re.S | re.M)
    fragment = re.sub(r"sha256: …", "sha256: " + "ab" * 32, fragment)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/secrets")
        with open(os.open(folder + "/secrets/bmc", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("secret\n")
        with open(folder + "/cluster.yaml", "w", encoding="utf-8") as file:
            file.write("".join(text for name, text in FRAME.items() if name not in sections) + fragment)
        env = {"PATH": os.environ["PATH"], "MUSTER_CONF": "", "MUSTER_STATE": folder + "/state", "HOME": folder}
        done = subprocess.run([muster, "--json", "inventory", "check", "-f", folder + "/cluster.yaml"], capture_output=True, text=True, env=env, check=False)
    said = done.stdout + done.stderr
    try:
        diagnostics = json.loads(done.stdout)
        diagnostics = diagnostics.get("diagnostics", diagnostics) if isinstance(diagnostics, dict) else diagnostics
        errors = [d["text"] for d in diagnostics if d.get("severity") == "error"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"muster said something else: {said[:300]}"]
    return [text for text in errors if not ELSEWHERE.search(text)]


def main():
    muster, pages, bad, seen = sys.argv[1], sys.argv[2:], 0, 0
    for page in pages:
        for line, fragment in fragments(page):
            seen += 1
            for problem in check(muster, fragment):
                bad = 1
                print(f"{page}:{line}: {problem}")
    print(f"{seen} fragments")
    # Must be able to fail.
    if not check(muster, "profiles:\n  a: {imgae: bookworm}\n"):
        print("a fragment with a misspelt key was accepted")
        bad = 1
    return bad if seen > 10 else 1


sys.exit(main())
