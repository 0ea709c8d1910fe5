#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The field's words for keys of the inventory: C++ members and types by code, keys by the texts that hold inventories.

Rerun: tools/migrations/inventory_keys.py. What is left to the hand: inventory/schema/renamed.cc, prose."""
import re

from source_text import SOURCE, read, replace_in_code, tracked, write

CLUSTER = r"(?<![\w.])((?:\w+(?:\.|->))*cluster_?(?:\.|->)|Cluster::)"
CODE = [
    (r"\bKeepPolicy\b", "MonitorPolicy"),
    (r"\b(make_)?keepSpec\b", r"\1monitorSpec"),
    (r"\bcheckKeep\b", "checkMonitor"),
    (CLUSTER + r"keep\b", r"\1monitor"),
    (r"\bAtDeadline::Stay\b", "OnTimeout::Wait"),
    (r"\bAtDeadline::Return\b", "OnTimeout::Undrain"),
    (r"\bAtDeadline\b", "OnTimeout"),
    (r"\bat_deadline\b", "on_timeout"),
    (r"\bOnDeclarationChange::Leave\b", "OnConfigChange::Ignore"),
    (r"\bOnDeclarationChange\b", "OnConfigChange"),
    (r"\bdeclaration_changed\b", "on_config_change"),
    (r"\binventory::WhenUnclear::GoOn\b", "inventory::OnInconclusive::Continue"),
    (r"\bWhenUnclear::GoOn\b", "OnInconclusive::Continue"),
    (r"\bWhenUnclear\b", "OnInconclusive"),
    (r"\b(regression|slower|rule|RegressionRule)(\.|::)when_unclear\b", r"\1\2on_inconclusive"),
    (r"\b(gate|cluster_\.gates\[\"collective\"\])(\.|->)on\b", r"\1\2groups"),
    (r"\b(component|bios)(\.|->)via\b", r"\1\2intermediate"),
    (r"\bcomponents\[0\]\.via\b", "components[0].intermediate"),
    (r"\bviaSpec\b", "intermediateSpec"),
    (r"\bmake_viaSpec\b", "make_intermediateSpec"),
    (r"\b(credential(?:->second|\.second)?|second)\.next\b", r"\1.rotate_to"),
]
FILES = {  # members with names that other structs have too
    "monitor/symptoms.cc": [(r"\brule\.at_least\b", "rule.min_count")],
    "inventory/schema/json.cc": [(r"\brule\.at_least\b", "rule.min_count"), (r"\bstorage\.at\b", "storage.mount"),
                                 (r"\bkeep\b", "policy")],
    "inventory/schema/tables_monitor.cc": [(r"&SymptomRule::at_least", "&SymptomRule::min_count"), (r"\bkeep\b", "policy")],
    "inventory/schema/tables.cc": [(r"&Credential::next", "&Credential::rotate_to"), (r"&Gate::on\b", "&Gate::groups")],
    "inventory/schema/tables_change.cc": [],
    "inventory/schema/tables_firmware.cc": [(r"&FirmwareComponent::via", "&FirmwareComponent::intermediate"),
                                            (r"\bstone\b", "image")],
    "inventory/schema/tables_mounts.cc": [(r"\bsystem\.at\b", "system.mount"), (r"&MountedSystem::at\b", "&MountedSystem::mount")],
    "inventory/model/monitor.h": [(r"\bat_least\b", "min_count")],
    "inventory/model/mounts.h": [(r"\bat;", "mount;")],
    "inventory/model/firmware.h": [(r"\bvia\b", "intermediate")],
    "inventory/model/cluster.h": [(r"SecretRef next;", "SecretRef rotate_to;"), (r"> on;", "> groups;"),
                                  (r"MonitorPolicy keep;", "MonitorPolicy monitor;")],
    "inventory/parse/change.h": [(r"\bwhen_unclear\b", "on_inconclusive"), (r"\bGoOn\b", "Continue")],
    "provision/storage/storage.cc": [(r"\bstorage\.at\b", "storage.mount")],
    "tests/validate/phase_test.cc": [(r"(file_systems\[.*?)\.at =", r"\1.mount =")],
    "tests/provision/storage/storage_test.cc": [(r"\.at = ", ".mount = "), (r"\bsystem\.at\b", "system.mount")],
    "tests/inventory/model/monitor_test.cc": [(r"\.at_least\b", ".min_count"), (r"\bkeep\b", "monitor"), (r"\bKeepTest\b", "MonitorTest")],
}
YAML = [
    (r"(\{level: [a-z{}]+, |^    )on: \[", r"\1groups: ["),
    (r"\bat_deadline: stay\b", "on_timeout: wait"),
    (r"\bat_deadline: return\b", "on_timeout: undrain"),
    (r"\bat_deadline\b", "on_timeout"),
    (r"\bdeclaration_changed: leave\b", "on_config_change: ignore"),
    (r"\bdeclaration_changed\b", "on_config_change"),
    (r"(symptoms?: \{.*?)\bat_least:", r"\1min_count:"),
    (r"(action: [a-z]+, |\{)at_least: ", r"\1min_count: "),
    (r"((?:^|\\n|\")keep: )(?=\{|\")", lambda m: m.group(1).replace("keep", "monitor")),
    (r"^keep:$", "monitor:"),
    (r"\bkeep\.(symptoms|repairs|recovery|rejoin_minutes)\b", r"monitor.\1"),
    (r"\bwhen_unclear: go-on\b", "on_inconclusive: continue"),
    (r"\bwhen_unclear: halt\b", "on_inconclusive: halt"),
    (r"(password: \{file: [\w./+\" -]+\}, |add )next: \{file", r"\1rotate_to: {file"),
    (r"\bvia: \[", "intermediate: ["),
    (r"\bfits:(?=[0-9a-f]{8}|abc|\"| ?`)", "match:"),
]
SKIP = ("CHANGELOG.md", "docs/adr/", "docs/inventory.md", "tools/migrations/", "inventory/schema/json")


def main():
    for path in tracked():
        if path.startswith(("tools/migrations/", "CHANGELOG.md", "web/")):
            continue
        try:
            text = old = read(path)
        except (IsADirectoryError, FileNotFoundError):
            continue
        if path.endswith(SOURCE):
            def change(piece):
                for pattern, new in CODE + FILES.get(path, []):
                    piece = re.sub(pattern, new, piece, flags=re.M)
                return piece
            text = replace_in_code(text, change)
        if path.endswith(SOURCE + (".md", ".yaml")) or path.startswith("tests/fuzz/corpus/") or path == "tools/demo":
            if not path.startswith(SKIP):
                for pattern, new in YAML:
                    text = re.sub(pattern, new, text, flags=re.M)
        if text != old:
            write(path, text)


if __name__ == "__main__":
    main()
