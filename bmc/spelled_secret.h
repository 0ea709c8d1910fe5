// SPDX-License-Identifier: Apache-2.0
// A secret in a text, in whatever spelling the text has it: as it is, in a URL, in HTML, in JSON,
// in JSON within JSON. A list of spellings has always forgotten one ("%2f" beside "%2F").
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace muster::bmc {

struct SpelledAt {
  std::size_t begin = 0, end = 0;  ///< bytes of the text
};

/// The first place from `from` on. Of each byte of the secret counts: itself, %XX (also of the
/// percent sign before it, "%2526"), + for a blank, &name; &#N; &#xN; (also behind "&amp;"), \uXXXX
/// and pairs of it, \xXX, \n and the like; backslashes before any of them are passed over. The
/// secret must not be empty.
/// Source: RFC 3986 2.1; RFC 8259 7; HTML "Named character references", those of ASCII signs
std::optional<SpelledAt> findSpelled(std::string_view text, std::string_view secret,
                                     std::size_t from = 0);

}  // namespace muster::bmc
