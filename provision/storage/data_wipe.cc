// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/data_wipe.h"

#include "wire/disk_rule.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"
#include "provision/facets.h"
#include "provision/inspection.h"
#include "provision/storage/disk_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace muster::provision {

namespace {

/// What the store keeps of a permission: "STATE: …", what follows is the reason, the use, the
/// intent.
enum class Permission { None, Open, Used, Done };
constexpr std::array kPermissions = std::to_array<std::pair<Permission, std::string_view>>(
    {{Permission::Open, "open"}, {Permission::Used, "used"}, {Permission::Done, "done"}});

std::string printed(Permission permission, std::string_view rest) {
  for (const auto& [each, word] : kPermissions)
    if (each == permission) return fmt::format("{}: {}", word, rest);
  return "";
}
std::pair<Permission, std::string_view> parsed(std::string_view value) {
  const auto colon = value.find(": ");
  for (const auto& [permission, word] : kPermissions)
    if (colon != std::string_view::npos && value.substr(0, colon) == word)
      return {permission, value.substr(colon + 2)};
  return {Permission::None, {}};
}

constexpr std::string_view kUnknown = "-";

std::string keyOf(const NodeName& node) { return "wipe-data." + node.str(); }

/// "used: SECONDS DIGEST INTENT": since when, and for which order ("-": not known). Of an earlier
/// version only the intent.
struct Use {
  std::string intent, order;
  long long since = 0;

  std::string str() const {
    return printed(Permission::Used, fmt::format("{} {} {}", since, order, intent));
  }
  static Use parse(std::string_view rest) {
    const std::string text(rest);
    Use use;
    std::istringstream words(text);
    if (words >> use.since >> use.order && words.get() == ' ' && std::getline(words, use.intent) &&
        !use.intent.empty())
      return use;
    return {text, std::string(kUnknown), 0};
  }
  bool standsFor(const Use& other) const {
    const auto age = other.since - since;
    return order != kUnknown && order == other.order && age >= 0 &&
           age <= std::chrono::seconds(kDataWipeStands).count();
  }
};

}  // namespace

Result<void> allowDataWipe(lifecycle::Store& store, const NodeName& node,
                           const std::string& reason) {
  return store.putValue(keyOf(node), printed(Permission::Open, reason));
}

std::string orderWords(const inventory::Profile& profile, const inventory::Node& node,
                       const std::string& image_digest, const wire::Hardware& hardware) {
  std::set<std::string> serials;
  for (const auto& disk : hardware.disks) serials.insert(disk.serial);
  if (hardware.cpus == 0 || serials.empty() || serials.contains("")) return {};
  wire::WriteImageParams params;
  params.disk = profile.disk;
  addDiskParams(profile, node, {}, params);
  const auto task = jsonOrNone(toJson(params), kKeptJson);
  nlohmann::json order{{"image", image_digest}, {"serials", serials}};
  for (const char* part : {"disk", "root", "storage"})
    if (task.contains(part)) order[part] = task[part];
  return jsonText(order);
}

Result<bool> takeDataWipe(lifecycle::Store& store, const NodeName& node,
                          const DataWipeOrder& order) {
  TRY(now, store.getValue(keyOf(node)));
  if (!now) return false;
  Use use{order.intent, order.words.empty() ? std::string(kUnknown) : io::sha256Hex(order.words),
          std::chrono::duration_cast<std::chrono::seconds>(order.now.time_since_epoch()).count()};
  const auto [permission, rest] = parsed(*now);
  if (permission == Permission::Used) {
    const auto before = Use::parse(rest);
    if (before.intent == order.intent) return true;
    if (!before.standsFor(use)) return false;
    use.since = before.since;  // however often it is tried again
  } else if (permission != Permission::Open || !order.may_begin) {
    return false;
  }
  return store.exchangeValue(keyOf(node), now, use.str());
}

Result<void> endDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& intent) {
  TRY(now, store.getValue(keyOf(node)));
  if (!now) return {};
  const auto [permission, rest] = parsed(*now);
  if (permission != Permission::Used || Use::parse(rest).intent != intent) return {};
  TRY_OK(store.exchangeValue(
      keyOf(node), now,
      printed(Permission::Done, intent)));  // else somebody has given another one meanwhile
  return {};
}

std::optional<std::string> foreignData(const inventory::Profile& profile,
                                       const wire::Hardware& hardware) {
  std::string held;
  const auto of_system = systemDisks(profile, hardware);
  for (const auto& set : profile.storage) {
    const auto rule = wire::DiskRule::parse(set.disks);
    if (!rule) continue;  // the agent says what is wrong with it
    const auto fits = rule->fitting(hardware.disks);
    const bool system = std::any_of(fits.begin(), fits.end(), [&](const wire::Disk* disk) {
      return std::find(of_system.begin(), of_system.end(), disk) != of_system.end();
    });
    if (system || fits.size() != static_cast<std::size_t>(set.count)) continue;
    for (const auto* disk : fits)
      if (disk->use == wire::DiskUse::System || disk->use == wire::DiskUse::Other)
        held += fmt::format("{}disks of {}: {} (serial {}) holds {}", held.empty() ? "" : ", ",
                            set.name, disk->path, disk->serial, disk->content);
  }
  if (held.empty()) return std::nullopt;
  return fmt::format(
      "{}; they are not overwritten, because a permission to wipe the system disk does not cover "
      "data",
      held);
}

std::string wipeAdviceFor(const Refusal& refusal, const NodeName& node) {
  if (refusal.has(wire::TaskReason::DataWipeDenied))
    return fmt::format(
        "; to keep what they hold, take the set out of the profile's `storage` (its disks are left "
        "alone then); if it may go: `muster wipe {} --data --reason …`",
        node.str());
  if (refusal.has(wire::TaskReason::SystemWipeDenied))
    return fmt::format("; if what it holds may go: `muster wipe {} --reason …`", node.str());
  return {};
}

std::optional<lifecycle::Finding> newMemberFinding(const Refusal& refusal, const NodeName& node,
                                                   WallTime at) {
  if (!refusal.has(wire::TaskReason::MemberReplaced)) return std::nullopt;
  lifecycle::Finding finding;
  finding.facet = {lifecycle::Subject(node), facet(kImage)};
  finding.text = fmt::format("a storage set of {} has a new disk, and its data is whole: {}",
                             node.str(), refusal.why);
  finding.what_to_do = fmt::format(
      "to keep the data: take the set out of `storage` of the node's profile (a profile of its "
      "own, if others have the set) and `muster apply --nodes {0}`; then on {0}, with the names "
      "and the UUID of this "
      "finding: mdadm --assemble --run /dev/md/SET --uuid=UUID; echo type=raid | sfdisk --label "
      "gpt NEWDISK; mdadm /dev/md/SET --add NEWDISK's first partition; mount it by a line in "
      "`user_data`. "
      "If the data may go: muster wipe {0} --data --reason …",
      node.str());
  finding.at = at;
  return finding;
}

}  // namespace muster::provision
