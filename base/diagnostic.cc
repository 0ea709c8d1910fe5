// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace muster {

namespace {

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return "note";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  return "error";
}

}  // namespace

std::string Diagnostic::str() const {
  std::string out = where.file.empty() ? std::string() : where.str() + ": ";
  out += word(severity);
  out += ": " + text;
  if (!suggestion.empty()) out += " (" + suggestion + ")";
  return out;
}

void Diagnostics::error(SourceRef where, std::string text, std::string suggestion) {
  all_.push_back({Severity::Error, std::move(where), std::move(text), std::move(suggestion)});
}

void Diagnostics::warning(SourceRef where, std::string text, std::string suggestion) {
  all_.push_back({Severity::Warning, std::move(where), std::move(text), std::move(suggestion)});
}

bool Diagnostics::hasErrors() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::Error; });
}

void Diagnostics::sort() {
  std::stable_sort(all_.begin(), all_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.file, a.where.line, a.where.column) <
           std::tie(b.where.file, b.where.line, b.where.column);
  });
}

}  // namespace muster
