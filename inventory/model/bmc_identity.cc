// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/bmc_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace muster::inventory {
namespace {

/// In the order of AcceptedIdentity::Kind.
constexpr std::array<std::string_view, 5> kWords = {
    "chassis-serial", "system-uuid", "manager-serial", "manager-uuid", "service-uuid"};
constexpr std::size_t kMaxAccepted = kWords.size();
constexpr std::size_t kMaxValueBytes = 128;

Result<AcceptedIdentity> parseOne(std::string_view text) {
  const auto equals = text.find('=');
  const auto found = std::ranges::find(kWords, text.substr(0, equals));
  if (equals == std::string_view::npos || found == kWords.end())
    return fail(ErrorCode::InvalidInput,
                fmt::format("write KIND=VALUE, where KIND is one of {}", fmt::join(kWords, ", ")));
  const auto value = text.substr(equals + 1);
  if (value.empty() || value.size() > kMaxValueBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("write the value that the BMC reports after {}=, of 1 to {} bytes",
                            *found, kMaxValueBytes));
  return AcceptedIdentity{static_cast<AcceptedIdentity::Kind>(found - kWords.begin()),
                          std::string(value)};
}

}  // namespace

std::string_view word(AcceptedIdentity::Kind kind) {
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string AcceptedIdentity::str() const { return fmt::format("{}={}", word(kind), value); }

std::string str(const std::vector<AcceptedIdentity>& accepted) {
  std::string out;
  for (const auto& each : accepted) out += (out.empty() ? "" : " ") + each.str();
  return out;
}

Result<std::vector<AcceptedIdentity>> parseAcceptedIdentity(std::string_view text) {
  std::vector<AcceptedIdentity> out;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) {
      TRY(one, parseOne(text.substr(0, end)));
      if (std::ranges::any_of(out, [&](const auto& each) { return each.kind == one.kind; }))
        return fail(ErrorCode::InvalidInput, fmt::format("{} is given twice", word(one.kind)));
      out.push_back(std::move(one));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (out.empty() || out.size() > kMaxAccepted)
    return fail(ErrorCode::InvalidInput, "for example chassis-serial=1234567890");
  return out;
}

}  // namespace muster::inventory
