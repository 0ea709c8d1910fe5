// SPDX-License-Identifier: Apache-2.0
// What may be said of a file that somebody named and that may be none of muster's (--inventory
// /etc/shadow): where it is wrong, and nothing that stands in it.
#pragma once

#include "base/diagnostic.h"
#include "inventory/parse/document.h"
#include "inventory/schema/spec.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// What the file should have been, in words.
struct ForeignFile {
  const char* what;    ///< "inventory"
  const char* begins;  ///< how one begins
  const char* advice;  ///< which option names one
};

/// Whether it has any key of `spec`; if not, it is the wrong file. `root`: nothing when it is no
/// YAML; then its lines are looked at.
bool hasKeyOf(const ObjectSpec& spec, const std::optional<Value>& root, std::string_view text);
/// Of a file of YAML without any of the keys.
Diagnostics noKeyOf(const ForeignFile& expected, const std::string& file);
/// Of one that is no YAML: the same problems, without anything that stands in the file. `quoting`:
/// the places of those whose text repeats something of it.
Diagnostics withoutContent(const Diagnostics& found, const std::vector<SourceRef>& quoting,
                           const ForeignFile& expected);

}  // namespace muster::inventory
