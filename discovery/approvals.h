// SPDX-License-Identifier: Apache-2.0
// Approvals: certificates of BMCs that somebody has compared with what the machines themselves
// show. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "discovery/scanner.h"

namespace muster::discovery {

/// Fingerprints that count, each for one address or for any.
class ApprovedCertificates {
 public:
  /// Lines "ADDRESS FINGERPRINT" or "FINGERPRINT", as `muster discover scan` prints them; what
  /// follows '#' is a comment. Errors: InvalidInput with every bad line
  static Result<ApprovedCertificates> parse(std::string_view text, const std::string& file);
  /// For any address. Errors: InvalidInput
  Result<void> add(std::string_view fingerprint);
  bool covers(const Contact& contact) const;

 private:
  std::set<std::string> for_any_;
  std::map<std::string, std::set<std::string>> for_address_;
};

/// Lines that parse() reads again.
std::string contactsText(const std::vector<Contact>& contacts);

}  // namespace muster::discovery
