// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/protocol.h"

#include "lab/vbmc/messages.h"

#include <fmt/ranges.h>

#include <deque>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxWalked = 2000;
constexpr const char* kSchemas = "http://redfish.dmtf.org/schemas/v1/";

/// "#Chassis.v1_14_0.Chassis" → "Chassis.v1_14_0"; a collection has no version.
std::string namespaceOf(const std::string& type) {
  const auto name = type.starts_with('#') ? type.substr(1) : type;
  return name.substr(0, name.rfind('.'));
}

void linksOf(const json& value, std::deque<std::string>& links) {
  if (value.is_object())
    if (const auto id = value.find("@odata.id"); id != value.end() && id->is_string())
      links.push_back(id->get<std::string>());
  if (value.is_structured())
    for (const auto& part : value) linksOf(part, links);
}

}  // namespace

void addProtocolHeaders(io::ServerResponse& response, const std::string& method,
                        const std::vector<std::string>& allowed) {
  response.headers["OData-Version"] = "4.0";
  if (!response.headers.contains("Cache-Control")) response.headers["Cache-Control"] = "no-cache";
  const bool reads = method == "GET" || method == "HEAD";
  if ((reads && response.status < 400) || response.status == 405)
    response.headers["Allow"] = fmt::format("{}", fmt::join(allowed, ", "));
  if (response.status == 401) response.headers["WWW-Authenticate"] = "Basic realm=\"Redfish\"";
}

std::string describedBy(const nlohmann::json& resource) {
  const auto type = resource.is_object() ? resource.value("@odata.type", "") : std::string();
  return type.empty() ? std::string()
                      : fmt::format("<{}{}.json>; rel=describedby", kSchemas, namespaceOf(type));
}

std::optional<io::ServerResponse> refuseProtocol(const io::ServerRequest& request) {
  if (const auto version = request.headers.find("OData-Version");
      version != request.headers.end() && version->second != "4.0")
    return redfishError(412, "Base.1.8.HeaderInvalid",
                        "This service speaks OData-Version 4.0 only.", "Send OData-Version 4.0.");
  if (request.method != "GET") return std::nullopt;
  for (const auto& [name, value] : io::queryOf(request.target))
    if (name.starts_with('$') && name != "$expand")
      return redfishError(501, "Base.1.8.QueryNotSupported",
                          fmt::format("The query parameter {} is not supported.", name),
                          "Leave it out.");
  return std::nullopt;
}

nlohmann::json serviceDocument(const nlohmann::json& root) {
  json result = {{"@odata.context", kMetadata}};
  result["value"] =
      json::array({{{"name", "Service"}, {"kind", "Singleton"}, {"url", kRoot + "/"}}});
  for (const auto& [name, value] : root.items())
    if (value.is_object() && value.contains("@odata.id"))
      result["value"].push_back(
          {{"name", name}, {"kind", "Singleton"}, {"url", value["@odata.id"]}});
  return result;
}

std::string metadataDocument(const std::set<std::string>& types) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" Version=\"4.0\">\n";
  std::string root;
  for (const auto& type : types) {
    const auto name = type.substr(0, type.find('.'));
    if (name == "ServiceRoot") root = type;
    out += fmt::format("  <edmx:Reference Uri=\"{}{}_v1.xml\">\n", kSchemas, name);
    out += fmt::format("    <edmx:Include Namespace=\"{}\"/>\n", name);
    if (type != name) out += fmt::format("    <edmx:Include Namespace=\"{}\"/>\n", type);
    out += "  </edmx:Reference>\n";
  }
  out += fmt::format(
      "  <edmx:DataServices>\n"
      "    <Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"Service\">\n"
      "      <EntityContainer Name=\"Service\" Extends=\"{}.ServiceContainer\"/>\n"
      "    </Schema>\n"
      "  </edmx:DataServices>\n"
      "</edmx:Edmx>\n",
      root);
  return out;
}

std::set<std::string> typesBelow(
    const std::string& root,
    const std::function<std::optional<nlohmann::json>(const std::string&)>& find) {
  std::set<std::string> types, seen;
  std::deque<std::string> open = {root};
  while (!open.empty() && seen.size() < kMaxWalked) {
    const auto path = open.front().substr(0, open.front().find('#'));
    open.pop_front();
    if (!seen.insert(path).second) continue;
    const auto resource = find(path);
    if (!resource || !resource->is_object()) continue;
    if (const auto type = resource->value("@odata.type", ""); !type.empty())
      types.insert(namespaceOf(type));
    linksOf(*resource, open);
  }
  return types;
}

}  // namespace muster::lab::vbmc
