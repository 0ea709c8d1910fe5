// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/consoles.h"

#include <fmt/format.h>

#include <utility>

namespace muster::lifecycle {
namespace {

constexpr std::string_view kBoot = "[muster: boot ", kBegan = ", begun ";

}  // namespace

Task<void> RestartNotifier::announce(NodeName node, std::string task, std::string why) {
  if (!callback_ || std::exchange(announced_[node], task) == task) co_return;
  co_await callback_(std::move(node), std::move(why));
}

std::string consoleBootLine(int number, WallTime began, const std::string& why) {
  return fmt::format("{}{}{}{} ({})]", kBoot, number, kBegan, muster::toString(began), why);
}

std::optional<WallTime> consoleBootBegan(const std::vector<std::string>& lines) {
  if (lines.empty() || !lines.front().starts_with(kBoot)) return std::nullopt;
  const auto& line = lines.front();
  const auto at = line.find(kBegan), end = line.find(" (", at);
  if (at == std::string::npos || end == std::string::npos) return std::nullopt;
  const auto began =
      parseWallTime(std::string_view(line).substr(at + kBegan.size(), end - at - kBegan.size()));
  return began ? std::optional(*began) : std::nullopt;
}

std::vector<std::string> markedAsOlder(std::vector<std::string> lines, WallTime since) {
  const auto began = consoleBootBegan(lines);
  if (began && *began < since)
    lines.insert(
        lines.begin() + 1,
        fmt::format(
            "[muster: that was before this action, begun {}: the lines may be older than it]",
            muster::toString(since)));
  return lines;
}

}  // namespace muster::lifecycle
