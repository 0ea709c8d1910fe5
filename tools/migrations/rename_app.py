#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of app/ and cli/ by the glossary: identifiers, commands and options. Rerunning it changes nothing."""
import re

from source_text import read, replace_in_code, tracked, write

IDENTIFIERS = {
    "Duty": "Leadership", "kLostDuty": "kLostLeadership", "duty_": "leadership_", "duty": "leadership",
    "Turn": "StateLock", "takeTurn": "acquireLock", "askForTurn": "requestLock", "takeKeepersTurn": "acquireMonitorLock",
    "isAskedFor": "isLockRequested", "takeKeepersPlace": "acquireMonitorInstance", "kHandOver": "kHandOverTimeout",
    "believeTwin": "trustTwinBmcs", "liveCluster": "effectiveCluster", "lookAtPool": "observePool",
    "keeperServices": "monitorServices", "endLeftDnsmasq": "terminateOrphanedDnsmasq", "mustBe": "requireAgreed",
    "onlyControllersKeys": "localKeys", "keepGate": "storeGateRecord", "learntOf": "peerBaseline",
    "kHistoryIsFresh": "kHistoryMaxAge", "kHistoryCounts": "kHistoryWindow", "kAgentsReturn": "kAgentReconnectTimeout",
    "bootNodesOf": "followInventory", "endAfter": "stopAfter", "keepRenewing": "renewLoop",
    "asked_to_reload": "reload_requested", "endOfShift": "untilRunEnds", "shift": "run", "kLookForOthers": "kLockPollInterval",
    "kLookForRollouts": "kRolloutPollInterval", "kRestAfterTrouble": "kRetryInterval", "keepUntilAsked": "monitorUntilRequested",
    "serveInTurn": "waitForLeadership", "readAgain": "reloadInventory", "kAskShortly": "kRequestTimeout", "kAskFor": "kAcquireTimeout",
}
NOT_IN = {"kLook": None}
# Identifiers that are common words elsewhere are renamed in these files only.
ONLY = {
    "app/site/leadership.cc": {"kLook": "kPollInterval", "lost": "stepDown", "take": "acquire"},
    "cli/commands/keep.cc": {},
}
FOLDERS = ("app/", "cli/", "tests/app/", "tests/cli/")
COMMANDS = [
    (r"\bmuster keep\b", "muster monitor"),
    (r"\bquarantine hold\b", "quarantine add"), (r"\bquarantine lift\b", "quarantine remove"),
    (r'"quarantine", "hold"', '"quarantine", "add"'), (r'"quarantine", "lift"', '"quarantine", "remove"'),
    (r"\bbmc forget-pin\b", "bmc trust reset"), (r"\bbmc forget-refusal\b", "bmc auth reset"),
    (r"\bforget-pin gpu001\b", "trust reset gpu001"), (r'HasSubstr\("forget-refusal"\)', 'HasSubstr("bmc auth reset")'),
    (r"(console [A-Z]+) --take\b", r"\1 --force"),
    (r"--least-gbits\b", "--min-gbps"), (r"--when-unclear go-on\b", "--on-inconclusive continue"), (r"--when-unclear\b", "--on-inconclusive"),
    (r"--even-in-pool\b", "--force"), (r"\bfabric marking --", "fabric qos-check --"), (r'"fabric", "marking"', '"fabric", "qos-check"'),
    (r"--together\b", "--synchronized-load"),
    (r'command\(\{"keep"\}\)', 'command({"monitor"})'), (r'\(\{"keep", "--acknowledge"', '({"monitor", "--acknowledge"'),
    (r'(muster\("[ab]", \{)"keep"\}', r'\1"monitor"}'),
]


def identifiers(path, text):
    names = dict(IDENTIFIERS) if path.startswith(FOLDERS) else {}
    if path in ("tests/validate/phase_fixture.h",):
        names = {"lookAtPool": "observePool"}
    if path not in ("cli/commands/keep.cc",):
        names.pop("shift", None)
    names.update(ONLY.get(path, {}))
    if not names:
        return text
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    text = replace_in_code(text, lambda piece: pattern.sub(lambda m: names[m.group(1)], piece))
    return replace_in_code(text, lambda piece: piece.replace("Role::Looks", "Role::ReadOnly").replace("Role::Acts", "Role::Active"))


def fenced(text):
    """Documents: command lines in fenced blocks alone."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    return "".join(commands(part) if i % 2 else part for i, part in enumerate(parts))


def commands(text):
    for old, new in COMMANDS:
        text = re.sub(old, new, text)
    return text


for name in tracked():
    if name.startswith(("tools/migrations/", "docs/adr/")) or name in ("CHANGELOG.md", "cli/main.cc") or "/" not in name and name != "run":
        continue
    if name.endswith(".md"):
        if name.startswith("docs/"):
            before = read(name)
            after = fenced(before)
            if after != before:
                write(name, after)
        continue
    if not name.endswith((".cc", ".h", ".cu", ".py", ".sh", ".yaml", ".yml")) and not name.startswith("tools/"):
        continue
    before = read(name)
    after = commands(identifiers(name, before) if name.endswith((".cc", ".h")) else before)
    if after != before:
        write(name, after)
