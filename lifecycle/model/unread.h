// SPDX-License-Identifier: Apache-2.0
// What could not be read at the last look: facts of it are stale, whatever they say. Kept as facts
// of the subject, unread.WHAT, where WHAT is a phase or one of its facets.
#pragma once

#include "base/result.h"
#include "lifecycle/model/facet.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::string_view kUnreadPrefix = "unread.";
/// The value where it could be read; otherwise the error's code, with its text as evidence.
inline constexpr std::string_view kReadAgain = "none";

Fact unreadFact(const Subject& subject, std::string_view what, const Error& error, WallTime at);
Fact readAgainFact(const Subject& subject, std::string_view what, WallTime at);
bool isUnreadFacet(const FacetName& facet);
/// A look that fails again keeps the time of the first that failed.
void keepSince(Fact& fact, const FactSet& before);

struct Unread {
  std::string what;                   ///< "firmware", "enrolled"
  std::string code;                   ///< "denied"
  std::string text;                   ///< of the error
  WallTime since{};                   ///< the first look that failed
  std::optional<WallTime> last_read;  ///< the newest fact of it
  friend bool operator==(const Unread&, const Unread&) = default;
};
/// What of the subject is stale, by name. What was read after the look that failed is not.
std::vector<Unread> unreadOf(const FactSet& facts, const Subject& subject);
/// "firmware could not be read since 3 h (denied: …); its facts are 4 h old"
std::string text(const Unread& unread, WallTime now);
/// "90 s", "12 min", "3 h", "2 days"
std::string ageText(WallTime now, WallTime then);

}  // namespace muster::lifecycle
