#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renames what the wire, the agent and the gateway named: identifiers in code, by folder. Texts and comments are edited by hand."""
import re
import sys

sys.path.insert(0, "tools/migrations")
from source_text import read, replace_in_code, tracked, write

# Names of interfaces: wherever they are used.
EVERYWHERE = {
    "ToldPoll": "DeltaPoll", "as_before": "unchanged_since", "takes_short": "supports_delta",
    "AgentSenses": "MachineAccess", "WipeRights": "WipePolicy", "StillWorking": "ProgressHeartbeat",
    "letGoOf": "releaseDisk", "lookAtDisk": "scanContent", "kLookWindowBytes": "kScanWindowBytes", "kToldChunks": "kReportedChunks",
    "chunkIsRight": "chunkMatches", "keep_right_chunks": "keep_matching_chunks",
    "SwarmStanding": "SwarmStatus", "WipeRightsTest": "WipePolicyTest",
    "kBoardMagic": "kProgressMagic", "kSilentAfter": "kAgentTimeout", "kBoardFile": "kProgressFile", "boardBytes": "progressBytes", "MappedBoard": "MappedProgress",
}
# Only here, because the word is common.
IN = {
    ("wire/delta_poll",): {"told_": "reported_", "told": "reported", "shortened": "deltaOf", "answered": "acknowledged", "says": "repeats"},
    ("agent/core/agent",): {
        "shortened": "deltaOf", "told_.answered": "delta_.acknowledged", "converse": "pollLoop", "exchange": "pollOnce", "sense": "collectState", "senseHealth": "collectHealth",
        "take": "handleResponse", "describe": "pollRequest", "senses": "machine", "senses_": "machine_", "said": "reported",
        "said_all_": "all_reported_", "told_": "delta_", "told_hardware_": "reported_hardware_", "told_health_": "reported_health_",
        "told_controllers_": "announced_", "told": "announced", "learnControllers": "updateControllers", "troubles_": "logged_errors_",
        "trouble": "error", "kTellTakenUp": "kStartReportDelay", "kMaxTroubles": "kMaxLoggedErrors", "turn": "polled", "talk": "polling",
    },
    ("agent/imaging/", "tests/agent/imaging/"): {
        "say": "notify", "Say": "Notify", "say_": "notify_", "say_at": "notify_at", "rightsOf": "policyOf", "rights": "policy",
        "lied": "markCorrupt", "let_go": "release", "looked": "scanned", "tell": "notifyAgain",
    },
    ("agent/imaging/params",): {"say": "refuse"},
    ("agent/imaging/mirrors", "tests/agent/imaging/chunk_writer_test"): {"Lie": "Corrupt"},
    ("agent/imaging/chunk_writer",): {"Lie": "Corrupt"},
    ("agent/imaging/disks", "agent/imaging/storage_run", "agent/tasks/", "gateway/attestor"): {"told": "output", "said": "output"},
    ("agent/tasks/write_image", "agent/peers/", "tests/provision/peers/"): {"looked": "scanned", "liars": "corrupt_mirrors", "standing": "status"},
    ("agent/peers/", "tests/provision/peers/"): {"Board": "SharedProgress", "board": "progress", "board_": "progress_", "board_bytes_": "progress_bytes_"},
    ("agent/peers/engine_main",): {"told": "announced"},
    ("gateway/gateway_server", "gateway/node_record"): {
        "heedUntouched": "restoreUntouchedKey", "mayTake": "admitTasks", "endsInstalled": "overwritesInstalled", "knows": "hasStateOf",
        "lastHeard": "lastPoll", "ramCalls": "isRamOsActive", "admitStranger": "admitUnauthenticated", "stranger": "unauthenticated",
        "kLookAgain": "kStateCheckInterval", "kPollsOfTheLiving": "kPollsToRevive", "absorb": "apply", "isOver": "isRetired",
        "boot.heard": "boot.polls", "boot->heard": "boot->polls", "int heard": "int polls", "heard": "markSeen", "lose": "markLost",
        "keepResults": "restoreResults", "takeForgettable": "takeObsolete",
    },
    ("gateway/", "tests/gateway/"): {"giveBack": "restoreInstalled"},
    ("gateway/node_keys", "tests/gateway/node_keys"): {
        "Seat": "KeySlot", "seat": "slot", "kNobody": "kNoKey", "readSeat": "readSlot", "earlierLife": "earlierInstallation", "called": "admitPoll",
        "takeOver": "activateNext", "Ended": "Retired", "ended": "retired",
    },
    ("gateway/enrolment.",): {
        "told_": "reported_", "handOut": "issue", "shown": "armedRecord", "mayBe": "isExpectedAddress", "keep": "persist", "kept": "persisted",
        "changed": "changeStored", "makeVoid": "voidArming", "Made": "Issued", "being_written_": "pending_writes_",
        "ask_aside_until_": "bypass_store_until_", "keys->called": "keys->admitPoll", "keys.called": "keys.admitPoll",
        "keys.ended": "keys.retired", "called": "admitPoll", "ramCalls": "isRamOsActive",
    },
    ("lab/fleet/sim_agent",): {"told_": "delta_", "shortened": "deltaOf", "told_.answered": "delta_.acknowledged"},
    ("tests/agent/messages_test",): {"told": "delta", "shortened": "deltaOf", "answered": "acknowledged", "isSaid": "isReported"},
}


def rename(names):
    pattern = re.compile(r"(?<!std::)\b(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")\b")
    return lambda code: pattern.sub(lambda match: names[match.group(1)], code)


def main():
    for path in tracked("*.cc", "*.h"):
        names = dict(EVERYWHERE)
        for prefixes, more in IN.items():
            if path.startswith(prefixes):
                names.update(more)
        text = read(path)
        changed = replace_in_code(text, rename(names))
        if changed != text:
            write(path, changed)


main()
