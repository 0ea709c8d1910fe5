// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi -q -x` prints: a small XML of elements and text. Read with bounds; what has
// another shape is refused.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct XmlElement {
  std::string name, id;  ///< id: its attribute of that name
  std::string text;      ///< without the space around it
  std::vector<XmlElement> children;

  /// "ecc_errors/volatile/sram_correctable", from here; nullptr: there is none.
  const XmlElement* find(std::string_view path) const;
  /// Its text; "": there is none.
  std::string_view textAt(std::string_view path) const;
  std::vector<const XmlElement*> all(std::string_view child_name) const;
};

/// Answers the outermost element.
/// Errors: Corrupt: not well-formed, deeper or longer than nvidia-smi writes
Result<XmlElement> parseSmiXml(std::string_view text);

}  // namespace muster::validate
