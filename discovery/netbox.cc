// SPDX-License-Identifier: Apache-2.0
#include "discovery/netbox.h"

#include "base/json_input.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::discovery {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kAnswerWithin{60'000};
constexpr std::size_t kPageObjects = 200, kDevicesAQuery = 40, kMaxPageBytes = 32u << 20;
constexpr std::size_t kQuotedBytes = 200, kMaxNamedErrors = 5;
/// A token of NetBox 4.5 and later that names its own key: "nbt_KEY.TOKEN".
constexpr std::string_view kNewTokenPrefix = "nbt_";

Error corrupt(std::string_view what, std::string_view member, std::string_view is) {
  return Error(ErrorCode::Corrupt,
               fmt::format("NetBox's record of {}: \"{}\" {}", what, member, is));
}

/// One record; a member that is null or absent is empty, one of another kind is no record.
class Record {
 public:
  Record(const json& record, std::string_view what) : record_(record), what_(what) {}

  std::int64_t id() {
    const auto* found = member("id");
    if (!found || !found->is_number_integer()) return say("id", "is no number"), 0;
    return found->get<std::int64_t>();
  }
  std::string text(const char* key) {
    const auto* found = member(key);
    if (!found || found->is_null()) return {};
    if (!found->is_string()) return say(key, "is no text"), std::string();
    return found->get<std::string>();
  }
  bool flag(const char* key) {
    const auto* found = member(key);
    if (!found || found->is_null()) return false;
    if (!found->is_boolean()) return say(key, "is neither true nor false"), false;
    return found->get<bool>();
  }
  std::optional<double> number(const char* key) {
    const auto* found = member(key);
    if (!found || found->is_null()) return std::nullopt;
    if (!found->is_number()) return say(key, "is no number"), std::nullopt;
    return found->get<double>();
  }
  /// An object within; an empty one where there is none.
  const json& object(const char* key) {
    static const json kNone = json::object();
    const auto* found = member(key);
    if (!found || found->is_null()) return kNone;
    if (!found->is_object()) return say(key, "is no object"), kNone;
    return *found;
  }
  /// The first of a list of objects; an empty one where there is none.
  const json& firstOf(const char* key) {
    static const json kNone = json::object();
    const auto* found = member(key);
    if (!found || found->is_null() || (found->is_array() && found->empty())) return kNone;
    if (!found->is_array() || !found->front().is_object())
      return say(key, "is no list of objects"), kNone;
    return found->front();
  }
  std::string textIn(const char* key, const char* inner) {
    Record within(object(key), what_);
    auto out = within.text(inner);
    if (within.problem_ && !problem_) problem_ = within.problem_;
    return out;
  }
  std::int64_t idIn(const char* key) {
    const auto& within = object(key);
    if (within.empty()) return 0;
    Record inner(within, what_);
    const auto out = inner.id();
    if (inner.problem_ && !problem_) problem_ = inner.problem_;
    return out;
  }
  template <class T>
  Result<T> as(T value) {
    if (problem_) return fail(*problem_);
    return value;
  }
  Result<void> good() const {
    if (problem_) return fail(*problem_);
    return {};
  }

 private:
  const json* member(const char* key) {
    if (!record_.is_object()) return say(key, "is in no object"), nullptr;
    const auto found = record_.find(key);
    return found == record_.end() ? nullptr : &*found;
  }
  void say(std::string_view key, std::string_view is) {
    if (!problem_) problem_ = corrupt(what_, key, is);
  }
  const json& record_;
  const std::string_view what_;
  std::optional<Error> problem_;
};

std::string firstWords(std::string_view text) {
  return printable(text.substr(0, std::min(text.find('\n'), kQuotedBytes)));
}

/// What NetBox says is wrong: {"detail": …}, or {"site": ["Select a valid choice. …"]}.
std::string problemsIn(std::string_view body) {
  const auto said = jsonOrNone(body, kServerJson);
  if (!said.is_object()) return firstWords(body);
  std::string out;
  std::size_t named = 0;
  for (const auto& [key, value] : said.items()) {
    const auto& text = value.is_array() && !value.empty() ? value.front() : value;
    if (!text.is_string() || ++named > kMaxNamedErrors) continue;
    out += fmt::format("{}{}{}", out.empty() ? "" : "; ", key == "detail" ? "" : key + ": ",
                       text.get<std::string>());
  }
  return firstWords(out);
}

Result<json> pageOf(const io::HttpResponse& answer, const io::Url& url) {
  const auto origin = url.origin();
  if (answer.status == 401 || answer.status == 403)
    return fail(ErrorCode::Denied,
                fmt::format("{} refuses the token ({}): {}; it needs the right to view devices, "
                            "interfaces and IP addresses",
                            origin, answer.status, problemsIn(answer.body)));
  if (answer.status == 404)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} has no {}: name the root of NetBox, without /api", origin,
                            url.target.substr(0, url.target.find('?'))));
  if (answer.status == 400)
    return fail(ErrorCode::InvalidInput,
                fmt::format("NetBox does not take the request: {}", problemsIn(answer.body)));
  if (answer.status / 100 != 2)
    return fail(ErrorCode::Unavailable,
                fmt::format("{} answered {}: {}", origin, answer.status, problemsIn(answer.body)));
  auto parsed = parseJson(answer.body, kServerJson);
  if (!parsed) {
    const auto first = answer.body.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && answer.body[first] == '<')
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} answers with a page and not with JSON: is it the root of NetBox, "
                              "and is no login page before it?",
                              origin));
    return fail(std::move(parsed).error().within(
        fmt::format("the answer of {} is cut off, or no JSON", origin)));
  }
  if (!parsed->is_object() || !parsed->contains("results") || !parsed->at("results").is_array())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} answers, but not with a list of NetBox: \"results\" is missing", origin));
  return parsed;
}

}  // namespace

Result<NetboxDevice> netboxDevice(const json& source) {
  Record record(source, "a device");
  NetboxDevice out;
  out.id = record.id();
  out.name = record.text("name");
  out.serial = record.text("serial");
  out.rack = record.textIn("rack", "name");
  out.position = record.number("position");
  out.primary_ip4 = record.textIn("primary_ip4", "address");
  out.oob_ip = record.textIn("oob_ip", "address");
  return record.as(std::move(out));
}

Result<NetboxInterface> netboxInterface(const json& source) {
  Record record(source, "an interface");
  NetboxInterface out;
  out.id = record.id();
  out.device = record.idIn("device");
  out.name = record.text("name");
  out.mac = record.textIn("primary_mac_address", "mac_address");  // since 4.2
  if (out.mac.empty()) out.mac = record.text("mac_address");
  out.mgmt_only = record.flag("mgmt_only");
  // The end of the path, through patch panels; of a cable that ends at an interface itself.
  for (const auto* kind : {"connected_endpoints", "link_peers"}) {
    if (record.text((std::string(kind) + "_type").c_str()) != "dcim.interface") continue;
    Record peer(record.firstOf(kind), "an interface");
    out.peer_device = peer.textIn("device", "name");
    out.peer_port = peer.text("name");
    TRY_OK(peer.good());
    if (!out.peer_device.empty()) break;
  }
  return record.as(std::move(out));
}

Result<std::optional<NetboxAddress>> netboxAddress(const json& source) {
  Record record(source, "an IP address");
  NetboxAddress out;
  out.address = record.text("address");
  const auto kind = record.text("assigned_object_type");
  if (kind == "dcim.interface") {
    const auto& interface = record.object("assigned_object");
    Record within(interface, "an IP address");
    out.interface = within.id();
    out.device = within.idIn("device");
    TRY_OK(within.good());
  }
  TRY_OK(record.good());
  if (kind != "dcim.interface" || out.address.find(':') != std::string::npos)
    return std::optional<NetboxAddress>();
  return std::optional(std::move(out));
}

NetboxClient::NetboxClient(io::Url root, const Secret& token,
                           std::unique_ptr<io::HttpClient> client)
    : root_(std::move(root)), token_(token), client_(std::move(client)) {}

Async<json> NetboxClient::page(io::Url url) {
  io::HttpRequest request;
  request.url = url;
  request.timeout = kAnswerWithin;
  request.max_body_bytes = kMaxPageBytes;
  const bool is_new = token_.reveal().starts_with(kNewTokenPrefix);
  request.headers["Authorization"] = (is_new ? "Bearer " : "Token ") + token_.reveal();
  request.headers["Accept"] = "application/json";
  CO_TRY(answer, co_await client_->send(std::move(request)));
  co_return pageOf(answer, url);
}

Async<std::vector<json>> NetboxClient::list(std::string path, Parameters parameters) {
  auto url = root_;
  while (url.target.ends_with('/')) url.target.pop_back();
  url.target += path + fmt::format("?limit={}", kPageObjects);
  for (const auto& [name, value] : parameters)
    url.target += fmt::format("&{}={}", name, io::percentEncode(value));
  std::vector<json> out;
  while (true) {
    CO_TRY(read, co_await page(url));
    auto& results = read["results"];
    if (out.size() + results.size() > kMaxNetboxObjects)
      co_return fail(ErrorCode::Conflict,
                     fmt::format("NetBox lists more than {} objects at {}: name a site or a tag",
                                 kMaxNetboxObjects, path));
    for (auto& each : results) out.push_back(std::move(each));
    const auto next = read.find("next");
    if (next == read.end() || next->is_null()) co_return out;
    if (!next->is_string() || results.empty())
      co_return fail(ErrorCode::Conflict,
                     fmt::format("NetBox's pages of {} do not end: one is empty, and there is to "
                                 "be another",
                                 path));
    CO_TRY(following, io::Url::parse(next->get<std::string>()));
    // Whoever answers could have the token sent anywhere.
    if (following.origin() != root_.origin())
      co_return fail(
          ErrorCode::Conflict,
          fmt::format("NetBox says that its next page is at {}, and it was asked at {}: the token "
                      "is not sent there. Ask it by that name, or let the proxy before NetBox set "
                      "Host and X-Forwarded-Proto",
                      firstWords(following.origin()), root_.origin()));
    if (following.target == url.target)
      co_return fail(ErrorCode::Conflict,
                     fmt::format("NetBox's page of {} names itself as the next one", path));
    url = std::move(following);
  }
}

/// Interfaces and addresses of some devices: their ids have room in one URL.
Async<void> NetboxClient::addParts(std::vector<NetboxDevice>& devices, std::size_t first,
                                   std::size_t last) {
  Parameters of_these;
  std::map<std::int64_t, NetboxDevice*> by_id;
  for (auto i = first; i < last; ++i) {
    of_these.emplace_back("device_id", std::to_string(devices[i].id));
    by_id[devices[i].id] = &devices[i];
  }
  auto interfaces = co_await list("/api/dcim/interfaces/", of_these);
  if (!interfaces) co_return fail(std::move(interfaces).error());
  for (const auto& each : *interfaces) {
    CO_TRY(interface, netboxInterface(each));
    if (const auto found = by_id.find(interface.device); found != by_id.end())
      found->second->interfaces.push_back(std::move(interface));
  }
  auto addresses = co_await list("/api/ipam/ip-addresses/", std::move(of_these));
  if (!addresses) co_return fail(std::move(addresses).error());
  for (const auto& each : *addresses) {
    CO_TRY(address, netboxAddress(each));
    if (!address) continue;
    if (const auto found = by_id.find(address->device); found != by_id.end())
      found->second->addresses.push_back(std::move(*address));
  }
  co_return Result<void>();
}

Async<std::vector<NetboxDevice>> NetboxClient::devices(NetboxQuery query) {
  Parameters parameters;
  for (const auto& site : query.sites) parameters.emplace_back("site", site);
  for (const auto& tag : query.tags) parameters.emplace_back("tag", tag);
  for (const auto& role : query.roles) parameters.emplace_back("role", role);
  auto records = co_await list("/api/dcim/devices/", std::move(parameters));
  if (!records) co_return fail(std::move(records).error());
  std::vector<NetboxDevice> out;
  for (const auto& record : *records) {
    CO_TRY(device, netboxDevice(record));
    out.push_back(std::move(device));
  }
  for (std::size_t first = 0; first < out.size(); first += kDevicesAQuery) {
    auto added = co_await addParts(out, first, std::min(out.size(), first + kDevicesAQuery));
    if (!added) co_return fail(std::move(added).error());
  }
  co_return out;
}

}  // namespace muster::discovery
