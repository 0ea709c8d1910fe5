// SPDX-License-Identifier: Apache-2.0
#include "app/validation/isolation_log_copy.h"

namespace muster::app {
namespace {

std::string keyOf(const std::string& name) { return "isolation-log." + name; }

}  // namespace

Result<void> IsolationLogCopy::put(const std::string& name, const std::string& text) {
  return store_.putValue(keyOf(name), log_ + "\n" + text);
}

Result<std::optional<std::string>> IsolationLogCopy::get(const std::string& name) {
  TRY(kept, store_.getValue(keyOf(name)));
  const auto whose = log_ + "\n";
  if (!kept || !kept->starts_with(whose)) return std::nullopt;
  return std::optional(kept->substr(whose.size()));
}

/// The store has no word for taking a value away; an empty one belongs to nobody.
Result<void> IsolationLogCopy::forget(const std::string& name) {
  TRY(kept, get(name));
  return kept ? store_.putValue(keyOf(name), "") : Result<void>();
}

}  // namespace muster::app
