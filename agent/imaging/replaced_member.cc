// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/replaced_member.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace muster::agent {

namespace {

constexpr int kAllButOne = -1;
/// How many disks an array of the level can be without, whichever they are.
struct Spare {
  int raid, disks;
};
constexpr std::array<Spare, 4> kSpares = {{{1, kAllButOne}, {5, 1}, {6, 2}, {10, 1}}};

std::string valueOf(const std::string& examine, std::string_view key) {
  const auto begins = ("\n" + examine).find(fmt::format("\n{}=", key));
  if (begins == std::string::npos) return {};
  const auto from = begins + key.size() + 1;
  return examine.substr(from, examine.find('\n', from) - from);
}

}  // namespace

std::optional<std::string> replacedMember(const std::string& set, int raid,
                                          const std::vector<Member>& members) {
  const auto* spare = std::find_if(kSpares.begin(), kSpares.end(),
                                   [raid](const Spare& one) { return one.raid == raid; });
  if (spare == kSpares.end()) return std::nullopt;
  std::vector<std::string> whole, blank;
  std::string array;
  for (const auto& member : members) {
    if (member.use == wire::DiskUse::Empty) {
      blank.push_back(member.disk.str());
      continue;
    }
    const auto uuid = valueOf(member.examine, "MD_UUID");
    const bool fits = !uuid.empty() && (array.empty() || array == uuid) &&
                      valueOf(member.examine, "MD_LEVEL") == fmt::format("raid{}", raid) &&
                      valueOf(member.examine, "MD_DEVICES") == std::to_string(members.size());
    if (!fits) return std::nullopt;
    array = uuid;
    whole.push_back(member.disk.str());
  }
  const auto most =
      spare->disks == kAllButOne ? members.size() - 1 : static_cast<std::size_t>(spare->disks);
  if (blank.empty() || whole.empty() || blank.size() > most) return std::nullopt;
  return fmt::format(
      "{} is RAID {} with the UUID {}, and a member of it was replaced: its data is on {}; empty "
      "is {}",
      set, raid, array, fmt::join(whole, ", "), fmt::join(blank, ", "));
}

}  // namespace muster::agent
