// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/link_sense.h"

#include "agent/tasks/sysfs.h"
#include "base/io/files.h"
#include "wire/links/counter_text.h"

#include <charconv>

namespace muster::agent {

namespace {

constexpr std::chrono::minutes kApart{1};

std::optional<std::uint64_t> numberIn(const std::filesystem::path& file) {
  const auto text = io::readFile(file, kMaxSysfsBytes);
  std::uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

}  // namespace

links::PortReading readSysfsPort(const std::filesystem::path& port) {
  return links::readSysfs(
      [&](std::string_view file) { return numberIn(port / "counters" / file); });
}

std::vector<wire::Symptom> LinkSense::see(const std::string& id, const links::PortReading& now,
                                          std::string_view sysfs_rate,
                                          std::chrono::seconds up_for) {
  auto& [rate, seen] = ports_[id];
  const auto rate_now = links::widthSpeedOf(sysfs_rate);
  if (rate_now != rate) seen.clear();
  rate = rate_now;
  if (!seen.empty() && links::growth(seen.back().reading, now).was_cleared) seen.clear();
  while (seen.size() > 1 && seen[1].at + wire::kRateWindow <= up_for) seen.pop_front();
  if (seen.empty() || seen.back().at + kApart <= up_for) seen.push_back({up_for, now});
  const auto grown = links::growth(seen.front().reading, now);
  const auto seconds = static_cast<double>((up_for - seen.front().at).count());
  std::vector<wire::Symptom> out;
  for (const auto& one : links::evaluateEnd(grown, {seconds, seconds}, rate).complaints) {
    if (one.grade != links::Grade::Bad || (one.kind != "bit-errors" && one.kind != "recoveries"))
      continue;
    const auto count = grown.atLeast(one.kind == "bit-errors" ? links::Counter::SymbolErrors
                                                              : links::Counter::Recoveries);
    out.push_back({"network." + one.kind, id, count, one.text, count});
  }
  return out;
}

}  // namespace muster::agent
