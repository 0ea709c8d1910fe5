// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/action_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::lifecycle {
namespace {

constexpr std::array<std::pair<ActionCause, std::string_view>, 5> kCauses{
    {{ActionCause::Declared, "declared"},
     {ActionCause::Admission, "admission"},
     {ActionCause::Repair, "repair"},
     {ActionCause::Recovery, "recovery"},
     {ActionCause::Rejoin, "rejoin"}}};

/// How musters that wrote no facet began such a text; what they wrote is in pools still.
constexpr std::string_view kOldNoCertificate = "it has no certificate",
                           kOldVoidCertificate = "its certificate is void: ";

}  // namespace

std::string_view toString(ActionCause cause) {
  return std::find_if(kCauses.begin(), kCauses.end(),
                      [cause](const auto& row) { return row.first == cause; })
      ->second;
}

std::optional<ActionCause> parseActionCause(std::string_view word) {
  const auto row = std::find_if(kCauses.begin(), kCauses.end(),
                                [word](const auto& each) { return each.second == word; });
  return row == kCauses.end() ? std::nullopt : std::optional(row->first);
}

std::string print(const PoolReason& reason) {
  if (reason.cause == ActionCause::Declared) return reason.text;
  return fmt::format("{}{}: {}", toString(reason.cause),
                     reason.about.empty() ? "" : fmt::format(" ({})", reason.about), reason.text);
}

PoolReason parsePoolReason(std::string_view text) {
  PoolReason out{ActionCause::Declared, {}, std::string(text)};
  const auto word = text.substr(0, text.find_first_of(" :"));
  const auto cause = parseActionCause(word);
  if (!cause || *cause == ActionCause::Declared) return out;
  auto rest = text.substr(word.size());
  if (rest.starts_with(" (")) {
    const auto end = rest.find(')');
    if (end == std::string_view::npos) return out;
    out.about = std::string(rest.substr(2, end - 2));
    rest.remove_prefix(end + 1);
  }
  if (!rest.starts_with(": ")) return PoolReason{ActionCause::Declared, {}, std::string(text)};
  rest.remove_prefix(2);
  out.cause = *cause;
  out.text = std::string(rest);
  if (out.about.empty() && *cause == ActionCause::Admission &&
      (rest.starts_with(kOldNoCertificate) || rest.starts_with(kOldVoidCertificate)))
    out.about = "certificate";
  return out;
}

}  // namespace muster::lifecycle
