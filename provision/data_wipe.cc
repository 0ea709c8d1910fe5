#include "provision/data_wipe.h"

#include "agent/protocol/disk_rule.h"
#include "agent/protocol/wipe_guard.h"

#include "provision/inspection.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

namespace {

constexpr std::string_view kOpen = "open: ", kUsed = "used: ";
constexpr std::string_view kFinishedSet = "\"muster-data\"";  ///< in what the agent says of a disk

std::string keyOf(const NodeName& node) { return "wipe-data." + node.str(); }

}  // namespace

Result<void> allowDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& reason) { return store.putValue(keyOf(node), std::string(kOpen) + reason); }

Result<bool> takeDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& intent) {
  TRY(now, store.getValue(keyOf(node)));
  const std::string used = std::string(kUsed) + intent;
  if (!now || now->starts_with(kUsed)) return now == used;
  return store.exchangeValue(keyOf(node), now, used);
}

std::optional<std::string> foreignData(const inventory::Profile& profile, const agent::Hardware& hardware) {
  std::string held;
  const auto of_system = systemDisks(profile, hardware);
  for (const auto& set : profile.storage) {
    const auto rule = agent::DiskRule::parse(set.disks);
    if (!rule) continue;  // the agent says what is wrong with it
    const auto fits = rule->fitting(hardware.disks);
    const bool system = std::any_of(fits.begin(), fits.end(), [&](const agent::Disk* disk) { return std::find(of_system.begin(), of_system.end(), disk) != of_system.end(); });
    if (system || fits.size() != static_cast<std::size_t>(set.count)) continue;
    for (const auto* disk : fits)
      if (disk->content != "none" && disk->content.find(kFinishedSet) == std::string::npos)
        held += fmt::format("{}disks of {}: {} (serial {}) holds {}", held.empty() ? "" : ", ", set.name, disk->path, disk->serial, disk->content);
  }
  if (held.empty()) return std::nullopt;
  return fmt::format("{}; {}", held, agent::kDataGuard);
}

std::string wipeAdviceFor(const std::string& refusal, const NodeName& node) {
  if (refusal.find(agent::kDataGuard) != std::string::npos)
    return fmt::format("; to keep what they hold, take the set out of the profile's `storage` (its disks are left alone then); if it may go: `muster wipe {} --data --reason …`", node.str());
  if (refusal.find(agent::kWipeGuard) != std::string::npos) return fmt::format("; if what it holds may go: `muster wipe {} --reason …`", node.str());
  return {};
}

}  // namespace muster::provision
