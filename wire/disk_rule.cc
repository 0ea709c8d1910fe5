// SPDX-License-Identifier: Apache-2.0
#include "wire/disk_rule.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

namespace muster::wire {

namespace {

constexpr std::string_view kSerial = "serial:", kWwn = "wwn:", kSize = "size:";

/// "3TB", "1.92TB", "400GiB".
std::optional<std::uint64_t> bytesOf(const std::string& text) {
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  const std::string_view word = unit;
  const double factor = word == "GB"    ? 1e9
                        : word == "TB"  ? 1e12
                        : word == "MiB" ? 1 << 20
                        : word == "GiB" ? 1u << 30
                        : word == "TiB" ? 1ull << 40
                                        : 0;
  if (unit == text.c_str() || factor == 0 || !std::isfinite(number) || number < 0 || number > 1e6)
    return std::nullopt;
  return static_cast<std::uint64_t>(number * factor);
}

}  // namespace

Result<DiskRule> DiskRule::parse(std::string_view text) {
  DiskRule rule;
  if (text.empty()) return rule;
  if (text == "smallest") {
    rule.kind_ = Kind::Smallest;
    return rule;
  }
  for (const auto& [prefix, kind] :
       {std::pair{kSerial, Kind::Serial}, std::pair{kWwn, Kind::Wwn}}) {
    if (!text.starts_with(prefix) || text.size() == prefix.size()) continue;
    rule.kind_ = kind;
    rule.id_ = text.substr(prefix.size());
    return rule;
  }
  const auto dash = text.find('-');
  if (text.starts_with(kSize) && dash != std::string_view::npos) {
    const auto low = bytesOf(std::string(text.substr(kSize.size(), dash - kSize.size())));
    const std::string end(text.substr(dash + 1));
    const auto high =
        end.empty() ? std::optional(std::numeric_limits<std::uint64_t>::max()) : bytesOf(end);
    if (low && high && *low <= *high) {
      rule.kind_ = Kind::Size;
      rule.low_bytes_ = *low;
      rule.high_bytes_ = *high;
      return rule;
    }
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("\"{}\" does not name a disk: write serial:…, wwn:…, smallest or "
                          "size:LOW-HIGH (size:3TB-, size:400GB-500GB)",
                          text));
}

bool DiskRule::fit(std::string_view serial, std::string_view wwn, std::uint64_t size_bytes,
                   std::uint64_t smallest_bytes) const {
  switch (kind_) {
    case Kind::Any:
      return true;
    case Kind::Serial:
      return serial == id_;
    case Kind::Wwn:
      return wwn == id_;
    case Kind::Smallest:
      return size_bytes == smallest_bytes;
    case Kind::Size:
      return size_bytes >= low_bytes_ && size_bytes <= high_bytes_;
  }
  return false;
}

}  // namespace muster::wire
