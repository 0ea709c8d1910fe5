// SPDX-License-Identifier: Apache-2.0
// What one BMC was told in confidence, and must not come back in its own words: some services echo
// the request in their error, and log it. A BMC's words are shown to whoever may look: in answers
// of the API, a node's `why`, events and logs.
//
// They are withheld where an answer comes in, so that nobody who shows words has to think of it.
// This is against an echo, not against a BMC that wants to tell: that one has other ways.
#pragma once

#include "base/log.h"
#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

/// Of a secret that is shorter, all words are withheld that hold it as a word: what is left of them
/// would let it be guessed, and within other words it is chance ("right" in "rights").
inline constexpr std::size_t kLeastCutBytes = 8;

class WithheldWords {
 public:
  /// A password, in every spelling that spelled_secret.h knows.
  void add(const Secret& password);
  /// A session's token, or "Basic …" (basic_authentication.h), with padding or without, in either
  /// alphabet. One of fewer than kLeastCutBytes is no secret.
  void addToken(std::string_view token);

  /// The text without what was added.
  std::string without(std::string text) const;
  /// The same error without it; code, reasons and whether a retry can help stay.
  Error without(const Error& error) const;
  /// Takes it out of what a body says in words: every string where the answer is an error, else
  /// messages (Message, MessageArgs, Resolution …). Ids, links and values by which machines are
  /// told apart stay: a default password may be a serial number.
  void takeOutOf(nlohmann::json& body, bool is_error) const;

 private:
  void keep(std::string spelling);
  std::vector<Secret> spellings_;  ///< the latest ones, in the order in which they were used
};

/// Of an image that somebody else put into a drive: without a password ("user:password@host") and
/// without a query, which may hold a signature.
std::string imageWithoutSecrets(const std::string& url);

}  // namespace muster::bmc
