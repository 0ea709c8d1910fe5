// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API over HTTPS: requests, answers, and what a failure means. Knows nothing of
// drains.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"
#include "base/log.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::pool::kube {

using HttpFactory = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;

inline constexpr std::string_view kJson = "application/json";
/// RFC 7386. With metadata.resourceVersion in the patch the server refuses it (409) when the object
/// has moved on.
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";

struct Request {
  std::string method = "GET";
  std::string path;  ///< from "/api" or "/apis" on
  std::vector<std::pair<std::string, std::string>> query;
  std::string_view content_type = kJson;  ///< of the body
  nlohmann::json body;                    ///< null: none
};

/// An answer of the API server; a failure is told by its Status object.
struct Answer {
  struct Cause {
    std::string reason, message;
  };
  int status = 0;  ///< of HTTP, or the code of a Status object that says Failure
  nlohmann::json body;
  std::string reason, message;  ///< of a failure
  std::vector<Cause> causes;
  std::chrono::milliseconds retry_after{0};  ///< 0: the server did not say

  bool ok() const { return status / 100 == 2; }
  const Cause* cause(std::string_view wanted) const;
};

class Api {
 public:
  Api(inventory::KubernetesPool pool, HttpFactory http, Clock& clock);

  /// One request, whatever it answers. Repeated a bounded number of times when the server is busy
  /// and says when to come back (429, 5xx with Retry-After), and once with credentials read anew
  /// when it does not know us (401). An eviction that a disruption budget refuses is no busy
  /// server: it is answered at once. Errors: Unavailable, Timeout, Denied (TLS), NotFound (a
  /// credential that cannot be read), Corrupt (no JSON)
  Async<Answer> send(Request request);
  /// All items of a list, page by page. A list that expires on the way (410) begins anew.
  /// Errors: as send, and those of failure()
  Async<std::vector<nlohmann::json>> list(std::string path,
                                          std::vector<std::pair<std::string, std::string>> query);
  /// What a refusal means to an operator. `what`: "reading node gpu001"
  Error failure(const Answer& answer, std::string_view what) const;

 private:
  struct Session {
    std::shared_ptr<io::HttpClient> client;
    Secret token;
    std::chrono::steady_clock::time_point since;
  };
  Result<Session> session();
  Result<io::HttpRequest> httpRequest(const Request& request, const Secret& token) const;

  const inventory::KubernetesPool pool_;
  const HttpFactory http_;
  Clock& clock_;
  std::optional<Session> session_;
};

/// The text at a path of keys; empty when there is none. Answers of servers are never trusted to
/// have a shape.
std::string textAt(const nlohmann::json& value, std::initializer_list<const char*> path);
/// The value at a path of keys; null when there is none.
const nlohmann::json& valueAt(const nlohmann::json& value, std::initializer_list<const char*> path);

}  // namespace muster::pool::kube
