// SPDX-License-Identifier: Apache-2.0
// Errors as application/problem+json (RFC 9457).
#pragma once

#include "base/diagnostic.h"
#include "base/io/http.h"
#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

/// Of several hosts the one that serves the site, as it says itself.
struct ServingHost {
  std::string holder;
  std::string address;  ///< in the provisioning network
  std::string url;      ///< of its API; empty: it answers its own host alone
};

/// An Error, with what only an answer has.
struct Problem {
  Problem(Error why);  // NOLINT(google-explicit-constructor): TRY answers errors as they are
  Problem(int status, std::string_view code, std::string detail, std::string what_to_do = {});

  int status = 500;
  std::string code;  ///< "not-found"
  std::string detail;
  std::string what_to_do;
  bool retryable = false;
  std::vector<std::string> roles;  ///< that would do
  std::vector<Diagnostic> diagnostics;
  std::optional<ServingHost> serves = {};  ///< who would do what this host does not
};

/// A use case's words for its command line, as this order has them: "--force" is the member "force"
/// where the order has one. Within a command that is named ("muster apply --nodes …") nothing is
/// changed.
std::string inMembers(std::string_view text, const std::vector<std::string_view>& members);

nlohmann::json diagnosticJson(const Diagnostic& diagnostic);
Problem denied(std::string detail, std::vector<std::string> roles);
Problem unauthenticated(std::string detail);
/// Of the HTTP server itself, which has read no more than a part of the request.
Problem refusalOf(int status, std::string_view reason);

io::ServerResponse toResponse(const Problem& problem, const std::string& request_id);
/// "Not Found"
std::string_view titleOf(int status);

}  // namespace muster::api
