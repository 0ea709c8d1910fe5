// SPDX-License-Identifier: Apache-2.0
// OpenAPI 3.1 from the table of routes. Source: https://spec.openapis.org/oas/v3.1.0
#include "api/page_session.h"
#include "api/route.h"
#include "api/schema.h"
#include "base/version.h"

#include <algorithm>
#include <cctype>

namespace muster::api {
namespace {

using nlohmann::json;

json schemaOf(const Field& field) {
  switch (field.kind) {
    case Kind::Text:
    case Kind::Hostlist:
      return {{"type", "string"}};
    case Kind::Integer:
      return {{"type", "integer"}, {"minimum", field.min}, {"maximum", field.max}};
    case Kind::Number:
      return {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}};
    case Kind::Boolean:
      return {{"type", "boolean"}};
    case Kind::Texts:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
  }
  return json::object();
}

json parameter(const Field& field, const char* in) {
  return {{"name", field.name},
          {"in", in},
          {"required", std::string_view(in) == "path" || field.required},
          {"description", field.help},
          {"schema", schemaOf(field)}};
}

json bodyOf(const ApiRoute& route) {
  json properties = json::object(), required = json::array();
  for (const auto& field : route.body) {
    auto schema = schemaOf(field);
    schema["description"] = field.help;
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return {{"required", true}, {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

/// "GET /nodes/{name}/why" → "getNodesNameWhy"
std::string operationId(const ApiRoute& route) {
  std::string out;
  bool upper = false;
  for (const char c : std::string(route.method) + route.path) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter && out.size() < route.method.size())
      out += static_cast<char>(std::tolower(c));
    else if (letter)
      out += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = !letter;
  }
  return out;
}

json responsesOf(const ApiRoute& route) {
  json good = {
      {"description", route.status == 202 ? "Accepted: it is done in the background" : "Done"}};
  if (!route.schema.is_null())
    good["content"] = {{std::string(route.content_type), {{"schema", route.schema}}}};
  else if (route.status != 204)
    good["content"] = {{std::string(route.content_type), {{"schema", {{"type", "string"}}}}}};
  json out = {{std::to_string(route.status), std::move(good)}};
  const json problem = {
      {"description", "A problem (RFC 9457)"},
      {"content", {{"application/problem+json", {{"schema", refTo("Problem")}}}}}};
  out["4XX"] = problem;
  out["5XX"] = problem;
  return out;
}

std::string tagOf(const ApiRoute& route) {
  const auto end = route.path.find('/', 1);
  auto tag = route.path.substr(1, end == std::string::npos ? end : end - 1);
  return tag;
}

json operationOf(const ApiRoute& route) {
  json out = {{"operationId", operationId(route)},
              {"summary", route.summary},
              {"tags", {tagOf(route)}},
              {"responses", responsesOf(route)}};
  json parameters = json::array();
  for (const auto& field : route.path_fields) parameters.push_back(parameter(field, "path"));
  for (const auto& field : route.query) parameters.push_back(parameter(field, "query"));
  if (route.method == "POST")
    parameters.push_back({{"name", "Idempotency-Key"},
                          {"in", "header"},
                          {"required", false},
                          {"description", "The same order again is answered as before, for 24 h"},
                          {"schema", {{"type", "string"}, {"maxLength", 64}}}});
  if (route.method != "GET" && route.resource)
    parameters.push_back(
        {{"name", "If-Match"},
         {"in", "header"},
         {"required", false},
         {"description", "The ETag of the resource as it was looked at; 412 when it has changed"},
         {"schema", {{"type", "string"}}}});
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (!route.body.empty()) out["requestBody"] = bodyOf(route);
  if (route.reach == Reach::Anybody)
    out["security"] = json::array({json::object()});
  else
    out["x-muster-verb"] = toString(route.verb);
  return out;
}

/// Of browsers: it is no resource of the site, and the server answers it itself (server.cc).
json sessionOperations() {
  const auto operation = [](std::string_view id, std::string_view summary) {
    ApiRoute route;
    route.method = "POST";
    route.status = 204;
    return json{{"operationId", id},
                {"summary", summary},
                {"tags", {"session"}},
                {"responses", responsesOf(route)}};
  };
  return {{"post",
           operation("postSession", "Answers the token of the request as a cookie, for a browser")},
          {"delete", operation("deleteSession",
                               "Takes the cookie from the browser; its token "
                               "counts until it ends or is revoked")}};
}

/// Of logging in by OpenID Connect (api/oidc/logins.cc): for everybody.
json loginOperation(std::string_view id, std::string_view summary) {
  ApiRoute route;
  route.method = "POST";
  route.status = 200;
  route.schema = {{"type", "object"}};
  return {{"operationId", id},
          {"summary", summary},
          {"tags", {"session"}},
          {"security", json::array({json::object()})},
          {"responses", responsesOf(route)}};
}

}  // namespace

json openApi(const std::vector<ApiRoute>& routes) {
  json paths = json::object(), tags = json::array();
  for (const auto& route : routes) {
    std::string method(route.method);
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto below = route.reach == Reach::Anybody || route.path == "/metrics";
    paths[(below ? "" : std::string(kBasePath)) + route.path][method] = operationOf(route);
    json tag = {{"name", tagOf(route)}};
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
  }
  paths[std::string(kBasePath) + std::string(kSessionPath)] = sessionOperations();
  tags.push_back({{"name", "session"}});
  const auto login = std::string(kBasePath) + "/login";
  paths[login]["get"] =
      loginOperation("getLogin", "By which provider one can log in, and whether the page can");
  paths[login + "/device"]["post"] = loginOperation(
      "postLoginDevice", "Begin a login: a code for a person to enter in a browser (RFC 8628)");
  paths[login + "/device/poll"]["post"] =
      loginOperation("postLoginDevicePoll", "Whether the code was entered, and then the token");
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "muster"},
        {"version", kVersion},
        {"description", "What a site's muster server knows and does."},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", {{{"url", "/"}}}},
      {"security", {{{"token", json::array()}}, json::object()}},
      {"tags", std::move(tags)},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", schemas()},
        {"securitySchemes",
         {{"token",
           {{"type", "http"},
            {"scheme", "bearer"},
            {"description", "An API token, or the identity of a client of the Unix socket"}}}}}}}};
}

}  // namespace muster::api
