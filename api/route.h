// SPDX-License-Identifier: Apache-2.0
// The API's table: what is asked for, who may, with what parameters, and what is answered. The
// server, OpenAPI and the checks of a request are made from it.
#pragma once

#include "api/identity.h"
#include "api/problem.h"
#include "base/io/http.h"

#include <nlohmann/json.hpp>

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {
struct Options;
}

namespace muster::api {

class SiteReader;

inline constexpr std::string_view kBasePath = "/api/v1";
inline constexpr std::size_t kMaxOrderBytes = 64u << 10;
/// The largest number that JSON's numbers hold exactly: of a sequence, a cursor, a seed.
inline constexpr std::int64_t kAnySequence = std::int64_t{1} << 53;

enum class Kind { Text, Hostlist, Integer, Number, Boolean, Texts };

/// A parameter of the path or query, or a member of an order's body.
struct Field {
  std::string_view name;
  Kind kind = Kind::Text;
  std::string_view help;
  bool required = false;
  std::int64_t min = 0, max = 0;  ///< of an integer or number
};

/// What an order's reason may be: kept for ever, in the log and in lists.
inline constexpr std::size_t kMaxReasonBytes = 2'000;
inline constexpr std::size_t kMaxTextBytes = 32u << 10;  ///< of any other text

/// One request, checked against its route.
struct Call {
  Identity identity;
  ScopeFilter scope;
  std::map<std::string, std::string> path, query;
  nlohmann::json body;  ///< of an order
  std::string request_id;
  std::string actor;    ///< for the log: principal, way, address, request
  std::string address;  ///< where from
  std::string idempotency_key;

  /// Empty when it was not given.
  std::string text(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double number(const std::string& name) const;  ///< 0 when it was not given
  bool flag(const std::string& name) const { return text(name) == "true"; }
  std::vector<std::string> texts(const std::string& name) const;  ///< of the body
};

struct Answer {
  int status = 200;
  nlohmann::json body;
  io::Headers headers = {};
  std::optional<WallTime> as_of = {};     ///< said in the body, and no part of what the ETag is of
  std::optional<std::string> plain = {};  ///< instead of JSON; with a Content-Type in `headers`
};
using Reply = std::expected<Answer, Problem>;

/// On the reader thread.
using Act = std::function<Reply(SiteReader&, const Call&)>;

enum class Reach {
  Anybody,  ///< without an identity
  Scoped,   ///< whoever has a part of the site is answered about that part
  Site      ///< only for who has the whole site
};

struct ApiRoute {
  std::string_view method;
  std::string path;  ///< below kBasePath, unless it begins there; "/nodes/{name}"
  Verb verb = Verb::Look;
  Reach reach = Reach::Scoped;
  std::string_view summary;
  std::vector<Field> path_fields, query, body;
  nlohmann::json schema;  ///< of the answer; null: none, or no JSON
  int status = 200;       ///< of success
  Act act;
  bool is_stream = false;
  std::string_view content_type = "application/json";
  /// Of an order: answers the resource whose ETag an If-Match is held against; set by apiRoutes.
  Act resource = {};
  /// Of an order that is answered before it is done, and given again with its Idempotency-Key: what
  /// has come of it since. It is given what was answered then.
  std::function<Reply(SiteReader&, const Call&, Answer)> again = {};
  /// Of several hosts only the one that serves the site does it: it takes more than rows of the
  /// store (api/serving_host.h).
  bool needs_serving_host = false;
  /// Instead of `act`, of what takes seconds and needs nothing of the reader: asked beside the
  /// reader's thread, on one thread for all such routes, so that nobody else waits.
  std::function<Reply(const app::Options&, const Call&)> beside = {};
  bool knows_its_key = false;  ///< of an order: done again with the same Idempotency-Key it is the
                               ///< one of then, by the store itself
};

/// All routes, in the order of OpenAPI.
std::vector<ApiRoute> apiRoutes();
/// Their parts, by file.
void addSiteRoutes(std::vector<ApiRoute>& routes);
void addClientRoutes(std::vector<ApiRoute>& routes);
void addNodeRoutes(std::vector<ApiRoute>& routes);
void addGroupRoutes(std::vector<ApiRoute>& routes);
void addRecordRoutes(std::vector<ApiRoute>& routes);
void addBmcRoutes(std::vector<ApiRoute>& routes);
void addJournalRoutes(std::vector<ApiRoute>& routes);
void addCertificateRoutes(std::vector<ApiRoute>& routes);
void addOrderRoutes(std::vector<ApiRoute>& routes);
void addRunRoutes(std::vector<ApiRoute>& routes);
void addValidationRoutes(std::vector<ApiRoute>& routes);
void addPlanRoutes(std::vector<ApiRoute>& routes);
void addFirmwareRoutes(std::vector<ApiRoute>& routes);
void addFabricRoutes(std::vector<ApiRoute>& routes);
void addDiscoveryRoutes(std::vector<ApiRoute>& routes);
void addConsoleRoutes(std::vector<ApiRoute>& routes);
void addLocatorRoutes(std::vector<ApiRoute>& routes);
void addPowerRoutes(std::vector<ApiRoute>& routes);
void addTokenRoutes(std::vector<ApiRoute>& routes);
void addSettingsRoutes(std::vector<ApiRoute>& routes);

/// OpenAPI 3.1 of the table, as JSON.
nlohmann::json openApi(const std::vector<ApiRoute>& routes);

/// Checks query and body against the route. Errors: 400 (which member, what it may be; a parameter
/// that is given twice: which of the two was meant nobody knows)
std::expected<void, Problem> checkGivenOnce(std::string_view target);
std::expected<void, Problem> checkQuery(const ApiRoute& route,
                                        const std::map<std::string, std::string>& query);
std::expected<nlohmann::json, Problem> checkBody(const ApiRoute& route, std::string_view body);

}  // namespace muster::api
