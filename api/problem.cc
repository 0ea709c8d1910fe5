// SPDX-License-Identifier: Apache-2.0
#include "api/problem.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "lifecycle/model/json.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace muster::api {
namespace {

struct CodeRow {
  ErrorCode error;
  int status;
  std::string_view code;
};
constexpr std::array<CodeRow, 8> kCodes{{{ErrorCode::InvalidInput, 400, "invalid-input"},
                                         {ErrorCode::NotFound, 404, "not-found"},
                                         {ErrorCode::Conflict, 409, "conflict"},
                                         {ErrorCode::Unavailable, 503, "unavailable"},
                                         {ErrorCode::Timeout, 504, "timeout"},
                                         {ErrorCode::Denied, 403, "denied"},
                                         {ErrorCode::Corrupt, 500, "corrupt"},
                                         {ErrorCode::Internal, 500, "internal"}}};

struct TitleRow {
  int status;
  std::string_view title;
};
constexpr std::array<TitleRow, 16> kTitles{{{400, "Bad Request"},
                                            {401, "Unauthorized"},
                                            {403, "Forbidden"},
                                            {404, "Not Found"},
                                            {405, "Method Not Allowed"},
                                            {409, "Conflict"},
                                            {412, "Precondition Failed"},
                                            {413, "Content Too Large"},
                                            {414, "URI Too Long"},
                                            {415, "Unsupported Media Type"},
                                            {429, "Too Many Requests"},
                                            {431, "Request Header Fields Too Large"},
                                            {500, "Internal Server Error"},
                                            {501, "Not Implemented"},
                                            {503, "Service Unavailable"},
                                            {504, "Gateway Timeout"}}};

constexpr std::string_view kRetryAfterSeconds = "5";

}  // namespace

Problem::Problem(Error why) : detail(why.str()), retryable(why.canRetry()) {
  const auto row = std::ranges::find(kCodes, why.code(), &CodeRow::error);
  status = row->status;
  code = row->code;
  if (why.where()) {
    detail = why.text();
    diagnostics.push_back({Severity::Error, *why.where(), why.text(), ""});
  }
  if (retryable) what_to_do = "try again in a moment";
}

Problem::Problem(int as_status, std::string_view as_code, std::string text, std::string to_do)
    : status(as_status), code(as_code), detail(std::move(text)), what_to_do(std::move(to_do)) {}

namespace {

constexpr std::string_view kProgram = "muster";

/// Whether what stands before belongs to a command: no sentence has ended since its name.
bool isWithinCommand(std::string_view before) {
  const auto command = before.rfind(kProgram);
  if (command == std::string_view::npos) return false;
  const auto since = before.substr(command + kProgram.size());
  if (!since.starts_with(' ')) return false;
  return since.find_first_of("`;()\n") == std::string_view::npos && !since.contains(", ") &&
         !since.contains(". ");
}

}  // namespace

std::string inMembers(std::string_view text, const std::vector<std::string_view>& members) {
  std::string out;
  std::size_t done = 0;
  for (auto at = text.find("--"); at != std::string_view::npos; at = text.find("--", at + 2)) {
    const auto rest = text.substr(at + 2);
    auto end = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
    std::string name(rest.substr(0, end));
    std::ranges::replace(name, '-', '_');
    if (std::ranges::find(members, name) == members.end() || isWithinCommand(text.substr(0, at)))
      continue;
    out += text.substr(done, at - done);
    out += "\"" + name + "\"";
    done = at + 2 + name.size();
  }
  return out + std::string(text.substr(done));
}

nlohmann::json diagnosticJson(const Diagnostic& diagnostic) {
  return {{"severity", lifecycle::severityWord(diagnostic.severity)},
          {"file", diagnostic.where.file},
          {"line", diagnostic.where.line},
          {"column", diagnostic.where.column},
          {"text", diagnostic.text},
          {"what_to_do", diagnostic.suggestion}};
}

Problem denied(std::string detail, std::vector<std::string> roles) {
  Problem out(403, "denied", std::move(detail));
  out.what_to_do = roles.empty()
                       ? std::string("ask an administrator of the site")
                       : fmt::format("ask somebody with the role {}", fmt::join(roles, " or "));
  out.roles = std::move(roles);
  return out;
}

Problem unauthenticated(std::string detail) {
  return {401, "unauthenticated", std::move(detail),
          "use the Unix socket as a member of the group muster, or send a token: Authorization: "
          "Bearer TOKEN (muster token create)"};
}

Problem refusalOf(int status, std::string_view reason) {
  const auto code = status == 404   ? "not-found"
                    : status == 405 ? "method-not-allowed"
                    : status == 413 ? "too-large"
                    : status >= 500 ? "unavailable"
                                    : "invalid-input";
  Problem out(status, code, std::string(reason));
  out.retryable = status == 503;
  return out;
}

std::string_view titleOf(int status) {
  const auto row = std::ranges::find(kTitles, status, &TitleRow::status);
  return row == kTitles.end() ? "Error" : row->title;
}

io::ServerResponse toResponse(const Problem& problem, const std::string& request_id) {
  auto diagnostics = nlohmann::json::array();
  for (const auto& each : problem.diagnostics) diagnostics.push_back(diagnosticJson(each));
  nlohmann::json body = {{"type", "urn:muster:error:" + problem.code},
                         {"title", titleOf(problem.status)},
                         {"status", problem.status},
                         {"code", problem.code},
                         {"detail", printable(problem.detail)},
                         {"what_to_do", problem.what_to_do},
                         {"retryable", problem.retryable},
                         {"roles", problem.roles},
                         {"diagnostics", std::move(diagnostics)},
                         {"request_id", request_id}};
  if (problem.serves)
    body["serves"] = {{"holder", problem.serves->holder},
                      {"address", problem.serves->address},
                      {"url", problem.serves->url}};
  auto out = io::ServerResponse::text(problem.status, jsonText(body) + "\n");
  out.headers["Content-Type"] = "application/problem+json";
  out.headers["X-Request-Id"] = request_id;
  if (problem.status == 401) out.headers["WWW-Authenticate"] = "Bearer realm=\"muster\"";
  if (problem.retryable) out.headers["Retry-After"] = kRetryAfterSeconds;
  return out;
}

}  // namespace muster::api
