// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/renamed.h"

#include <array>

namespace muster::inventory {

namespace {

constexpr std::array kKeys = std::to_array<RenamedKey>({
    {"inventory", "keep", "monitor"},
    {"monitor", "declaration_changed", "on_config_change"},
    {"symptom", "at_least", "min_count"},
    {"drain", "at_deadline", "on_timeout"},
    {"credential", "next", "rotate_to"},
    {"gate", "on", "groups"},
    {"firmware-component", "via", "intermediate"},
    {"file-system", "at", "mount"},
    {"regression", "when_unclear", "on_inconclusive"},
});

constexpr std::array kValues = std::to_array<RenamedValue>({
    {"monitor", "on_config_change", "leave", "ignore"},
    {"drain", "on_timeout", "stay", "wait"},
    {"drain", "on_timeout", "return", "undrain"},
    {"regression", "on_inconclusive", "go-on", "continue"},
});

}  // namespace

std::span<const RenamedKey> renamedKeys() { return kKeys; }
std::span<const RenamedValue> renamedValues() { return kValues; }

std::string_view newKeyOf(std::string_view object, std::string_view key) {
  for (const RenamedKey& row : kKeys)
    if (row.object == object && row.old_key == key) return row.new_key;
  return {};
}

std::string_view newValueOf(std::string_view object, std::string_view key, std::string_view value) {
  for (const RenamedValue& row : kValues)
    if (row.object == object && row.key == key && row.old_value == value) return row.new_value;
  return {};
}

}  // namespace muster::inventory
