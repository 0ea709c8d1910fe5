// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/unread.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "lifecycle/model/facet_table.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kMaxTextBytes = 400;
constexpr std::string_view kSource = "muster";

FacetName facetFor(std::string_view what) {
  return FacetName(std::string(kUnreadPrefix) + std::string(what));
}

bool isOf(const FacetName& facet, std::string_view what) {
  const auto* row = findFacetRow(facet.str());
  return facet.str() == what || (row && row->owner == what);
}

}  // namespace

Fact unreadFact(const Subject& subject, std::string_view what, const Error& error, WallTime at) {
  return {subject,
          facetFor(what),
          std::string(toString(error.code())),
          at,
          std::string(kSource),
          jsonText(nlohmann::json{{"text", std::string(cutToBytes(error.str(), kMaxTextBytes))}})};
}

Fact readAgainFact(const Subject& subject, std::string_view what, WallTime at) {
  return {subject, facetFor(what), std::string(kReadAgain), at, std::string(kSource), {}};
}

bool isUnreadFacet(const FacetName& facet) { return facet.str().starts_with(kUnreadPrefix); }

void keepSince(Fact& fact, const FactSet& before) {
  const auto* was = before.find(fact.subject, fact.facet);
  if (was && was->value != kReadAgain && fact.value != kReadAgain)
    fact.observed_at = was->observed_at;
}

std::vector<Unread> unreadOf(const FactSet& facts, const Subject& subject) {
  std::vector<Unread> out;
  const auto all = facts.view(subject);
  for (const auto& fact : all) {
    if (!isUnreadFacet(fact.facet) || fact.value == kReadAgain) continue;
    Unread unread{
        fact.facet.str().substr(kUnreadPrefix.size()), fact.value, {}, fact.observed_at, {}};
    const auto evidence = jsonOrNone(fact.evidence, kKeptJson);
    if (evidence.is_object()) unread.text = evidence.value("text", std::string());
    for (const auto& other : all)
      if (!isUnreadFacet(other.facet) && isOf(other.facet, unread.what))
        unread.last_read = std::max(unread.last_read.value_or(WallTime{}), other.observed_at);
    if (!unread.last_read || *unread.last_read <= unread.since) out.push_back(std::move(unread));
  }
  return out;
}

std::string ageText(WallTime now, WallTime then) {
  const auto seconds =
      std::max<long>(0, std::chrono::duration_cast<std::chrono::seconds>(now - then).count());
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

std::string text(const Unread& unread, WallTime now) {
  auto out =
      fmt::format("{} could not be read since {} ({})", unread.what, ageText(now, unread.since),
                  unread.text.empty() ? unread.code : unread.text);
  if (unread.last_read)
    out += fmt::format("; what is known of it is {} old", ageText(now, *unread.last_read));
  return out;
}

}  // namespace muster::lifecycle
