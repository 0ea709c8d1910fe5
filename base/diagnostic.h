// SPDX-License-Identifier: Apache-2.0
// Diagnostics: everything that is wrong with an input, reported together.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace muster {

enum class Severity { Info, Warning, Error };

struct Diagnostic {
  Severity severity = Severity::Error;
  SourceRef where;
  std::string text;        ///< what is wrong
  std::string suggestion;  ///< what to do about it; may be empty

  std::string str() const;  ///< "file:line:column: error: text (suggestion)"
};

class Diagnostics {
 public:
  void error(SourceRef where, std::string text, std::string suggestion = {});
  void warning(SourceRef where, std::string text, std::string suggestion = {});

  bool hasErrors() const;
  const std::vector<Diagnostic>& all() const { return all_; }
  /// Ordered by file, line, column.
  void sort();

 private:
  std::vector<Diagnostic> all_;
};

}  // namespace muster
