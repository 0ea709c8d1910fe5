// SPDX-License-Identifier: Apache-2.0
// Messages between apt and the methods by which it fetches: a line with a number and words, lines
// of fields, an empty line. Source: "APT Method Interface" (package libapt-pkg-doc, method.html).
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::provision {

namespace apt {
inline constexpr int kCapabilities = 100, kLog = 101, kStatus = 102, kRedirect = 103,
                     kWarning = 104, kUriStart = 200, kUriDone = 201, kUriFailure = 400,
                     kGeneralFailure = 401, kUriAcquire = 600, kConfiguration = 601;
/// A configuration has each of apt's settings, some hundred of 100 bytes.
inline constexpr std::size_t kMaxMessageBytes = 1u << 20;
}  // namespace apt

struct AptMessage {
  int number = 0;
  std::string words;  ///< that follow the number: "URI Acquire"
  std::vector<std::pair<std::string, std::string>> fields;

  /// The first field of that name, whatever its case.
  std::optional<std::string> field(std::string_view name) const;
  friend bool operator==(const AptMessage&, const AptMessage&) = default;
};
/// Control characters in values become blanks: none of them makes a line of its own.
std::string toText(const AptMessage& message);
bool isSameAptName(std::string_view a, std::string_view b);
/// Names and values of a configuration, and URIs, are written as parts of a URL are: %2f.
std::string aptUnquoted(std::string_view text);

/// What apt says of the size of a file that it asks for, in a message 600. A size that is no
/// number, or 0, is none.
struct ExpectedSize {
  std::optional<std::uint64_t> exact, most;
};
ExpectedSize expectedSize(const AptMessage& asked);

/// Cuts what arrives into messages.
class AptMessageReader {
 public:
  void add(std::string_view bytes) { rest_ += bytes; }
  /// nullopt: none is whole yet. Errors: Corrupt (no message, or longer than kMaxMessageBytes)
  Result<std::optional<AptMessage>> next();
  /// Whether a part of a message is there.
  bool hasPart() const { return rest_.find_first_not_of('\n') != std::string::npos; }

 private:
  std::string rest_;
};

}  // namespace muster::provision
