// SPDX-License-Identifier: Apache-2.0
#include "base/markup.h"

#include "base/printable.h"

namespace muster {

std::string escapedMarkup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : printableLines(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  return out;
}

}  // namespace muster
