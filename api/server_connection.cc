// SPDX-License-Identifier: Apache-2.0
#include "api/server_connection.h"

#include "api/answer_members.h"
#include "api/answers.h"
#include "base/async/start.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAnswerBytes = 64u << 20;
constexpr std::size_t kMostPages = 1'000;
constexpr std::size_t kMostDetailBytes = 4'000;  ///< of a refusal, shown
constexpr std::size_t kMostShownDiagnostics = 20;
constexpr std::size_t kMostUrlBytes = 300;  ///< of the serving host, shown
constexpr std::string_view kUnknownResource = "unknown-resource";

struct CodeRow {
  std::string_view word;
  ErrorCode code;
};
/// `code` of problem+json (docs/api.md).
constexpr std::array<CodeRow, 15> kCodeWords{{{"invalid-input", ErrorCode::InvalidInput},
                                              {"unauthenticated", ErrorCode::Denied},
                                              {"denied", ErrorCode::Denied},
                                              {"not-found", ErrorCode::NotFound},
                                              {kUnknownResource, ErrorCode::NotFound},
                                              {"method-not-allowed", ErrorCode::Unavailable},
                                              {"conflict", ErrorCode::Conflict},
                                              {"outcome-unknown", ErrorCode::Conflict},
                                              {"not-serving", ErrorCode::Conflict},
                                              {"too-many-orders", ErrorCode::Unavailable},
                                              {"too-large", ErrorCode::InvalidInput},
                                              {"unavailable", ErrorCode::Unavailable},
                                              {"timeout", ErrorCode::Timeout},
                                              {"corrupt", ErrorCode::Corrupt},
                                              {"internal", ErrorCode::Internal}}};

/// "cluster.yaml:12:3: no such profile", of an inventory that the server could not read.
std::string diagnosticsText(const json& problem) {
  const auto found = problem.find("diagnostics");
  std::string out;
  if (found == problem.end() || !found->is_array()) return out;
  std::size_t shown = 0;
  for (const auto& each : *found) {
    if (!each.is_object() || shown++ == kMostShownDiagnostics) break;
    const auto line = each.value("line", json(0)), column = each.value("column", json(0));
    out += fmt::format("\n  {}:{}:{}: {}", textOf(each, "file"), jsonText(line), jsonText(column),
                       textOf(each, "text"));
  }
  return out;
}

/// What the server has refused, as an error of the same kind.
Error refusalFrom(const io::HttpResponse& response, const std::string& where) {
  const auto problem = jsonOrNone(response.body, kServerJson);
  if (!problem.is_object() || textOf(problem, "code").empty())
    return Error(ErrorCode::Unavailable,
                 fmt::format("{} answers {} and not as a muster does; see what listens there",
                             where, response.status))
        .retryable(response.status == 502 || response.status == 503);
  const auto word = textOf(problem, "code");
  const auto row = std::ranges::find(kCodeWords, word, &CodeRow::word);
  auto text = textOf(problem, "detail").substr(0, kMostDetailBytes);
  if (const auto advice = textOf(problem, "what_to_do"); !advice.empty()) text += "; " + advice;
  if (const auto serves = problem.find("serves"); serves != problem.end() && serves->is_object())
    if (const auto url = textOf(*serves, "url"); url.starts_with("https://"))
      text += fmt::format(": --server {} (it was not asked: a token goes to whom you name)",
                          url.substr(0, kMostUrlBytes));
  text += diagnosticsText(problem);
  return Error(row == kCodeWords.end() ? ErrorCode::Internal : row->code, std::move(text))
      .retryable(flagOf(problem, "retryable"));
}

std::string queryText(const std::vector<std::pair<std::string, std::string>>& query) {
  std::string out;
  for (const auto& [name, value] : query)
    if (!value.empty()) out += (out.empty() ? "?" : "&") + name + "=" + io::percentEncode(value);
  return out;
}

}  // namespace

ServerConnection::ServerConnection(RemoteSiteOptions options) : options_(std::move(options)) {
  if (options_.client) {
    client_ = std::move(options_.client);
  } else if (options_.socket.empty()) {
    io::TlsTrust trust;
    trust.ca_pem = options_.ca_pem;
    trust.identity = options_.identity;
    client_ = io::makeHttpClient(std::move(trust));
  } else {
    client_ = io::makeUnixHttpClient({options_.socket, options_.owners});
  }
}

std::string ServerConnection::where() const {
  return "the server at " + (options_.socket.empty() ? options_.url : options_.socket.string());
}

Result<std::unique_ptr<ServerConnection>> ServerConnection::open(RemoteSiteOptions options) {
  auto opened = std::unique_ptr<ServerConnection>(new ServerConnection(std::move(options)));
  const auto answer = opened->get("/server");
  if (answer) {
    if (!answer->is_object() || textOf(*answer, "version").empty())
      return fail(ErrorCode::Corrupt, opened->where() + " is no muster server");
    opened->facts_ = {textOf(*answer, "version"), textOf(*answer, "host"), textOf(*answer, "state"),
                      textOf(*answer, "inventory")};
    return opened;
  }
  if (answer.error().code() != ErrorCode::NotFound) return std::unexpected(answer.error());
  // An older one does not say who it is; whether it is one, its first answer shows.
  TRY(me, opened->get("/me"));
  if (!me.is_object() || textOf(me, "principal").empty())
    return fail(ErrorCode::Corrupt, opened->where() + " is no muster server");
  opened->is_older_ = true;
  return opened;
}

Result<io::HttpResponse> ServerConnection::send(io::HttpRequest request,
                                                const std::string& resource) {
  const bool is_order = request.method != "GET";
  if (options_.socket.empty()) {
    TRY(url, io::Url::parse(options_.url));
    request.url = std::move(url);
  } else {
    request.url = {"http", "localhost", 80, ""};
  }
  request.url.target = std::string(kBasePath) + resource;
  request.max_body_bytes = kMostAnswerBytes;
  request.headers["Accept"] = "application/json";
  if (!options_.token.empty()) request.headers["Authorization"] = "Bearer " + options_.token;
  std::optional<Result<io::HttpResponse>> answer;
  std::exception_ptr thrown;
  async::start(io_, async::answerInto(answer, client_->send(std::move(request))),
               [&](std::exception_ptr broken) {
                 thrown = std::move(broken);
                 io_.stop();
               });
  io_.restart();
  io_.run();
  if (thrown) std::rethrow_exception(thrown);
  if (!answer) return fail(ErrorCode::Internal, where() + " was not asked");
  if (!*answer) {
    auto error = std::move(*answer).error();
    if (error.has(io::DialFailure::NobodyListens)) return fail(std::move(error));
    const bool may_have_acted =
        is_order && (error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::Timeout);
    return fail(std::move(error).within(
        where() + (may_have_acted ? " did not answer; it may have done what it was asked to: look "
                                    "before you ask again"
                                  : " did not answer")));
  }
  auto& response = **answer;
  if (response.status / 100 != 2) {
    const auto problem = jsonOrNone(response.body, kServerJson);
    if (problem.is_object() && textOf(problem, "code") == kUnknownResource &&
        !facts_.version.empty())
      return fail(Error(ErrorCode::Unavailable,
                        fmt::format("{} (muster {}) does not know {}; this command is of muster "
                                    "{}: upgrade the server, or use --direct on its host",
                                    where(), facts_.version, resource.substr(0, resource.find('?')),
                                    kVersion))
                      .retryable(false));
    auto refusal = refusalFrom(response, where());
    if (is_older_ && (response.status == 404 || response.status == 405))
      refusal.within(where() + " is of an older muster than this command");
    return fail(std::move(refusal));
  }
  return std::move(response);
}

Result<json> ServerConnection::ask(io::HttpRequest request, const std::string& resource) {
  TRY(response, send(std::move(request), resource));
  if (response.status == 204) return json(nullptr);
  auto parsed = parseJson(response.body, kServerJson);
  if (!parsed)
    return fail(ErrorCode::Corrupt, fmt::format("{} answers something else than JSON: {}", where(),
                                                parsed.error().text()));
  return std::move(*parsed);
}

Result<json> ServerConnection::get(const std::string& resource, const Query& query,
                                   std::chrono::milliseconds timeout) {
  io::HttpRequest request;
  request.timeout = timeout;
  return ask(std::move(request), resource + queryText(query));
}

Result<std::string> ServerConnection::text(const std::string& resource, const Query& query,
                                           std::chrono::milliseconds timeout) {
  io::HttpRequest request;
  request.timeout = timeout;
  TRY(response, send(std::move(request), resource + queryText(query)));
  return std::move(response.body);
}

Result<json> ServerConnection::post(const std::string& resource, const json& body,
                                    const std::string& idempotency_key) {
  io::HttpRequest request;
  request.method = "POST";
  request.timeout = std::chrono::seconds(60);
  request.headers["Content-Type"] = "application/json";
  if (!idempotency_key.empty()) request.headers["Idempotency-Key"] = idempotency_key;
  request.body = jsonText(body);
  return ask(std::move(request), resource);
}

Result<std::vector<json>> ServerConnection::list(const std::string& resource, Query query) {
  std::vector<json> out;
  query.emplace_back("limit", std::to_string(kMaxPage));
  query.emplace_back("cursor", "");
  for (std::size_t page = 0; page < kMostPages; ++page) {
    TRY(answer, get(resource, query));
    TRY(items, itemsOf(answer));
    for (const auto& item : *items) out.push_back(item);
    query.back().second = textOf(answer, "next");
    if (query.back().second.empty()) return out;
  }
  return fail(ErrorCode::Corrupt, where() + " answers a list without an end");
}

}  // namespace muster::api
