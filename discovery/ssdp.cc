// SPDX-License-Identifier: Apache-2.0
#include "discovery/ssdp.h"

#include "base/ip_address.h"

#include "base/io/http.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::discovery {
namespace {

constexpr std::string_view kService = "urn:dmtf-org:service:redfish-rest:1";
constexpr std::size_t kMaxDatagramBytes = 8192;
constexpr int kMaxLines = 64;

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

}  // namespace

Result<SsdpService> parseSsdp(std::string_view text, Ipv4 sender) {
  auto no = [](std::string why) {
    return fail(ErrorCode::Corrupt, "no Redfish announcement: " + std::move(why));
  };
  if (text.size() > kMaxDatagramBytes) return no("too long");
  const auto end = text.find('\n');
  const auto first = trim(text.substr(0, end));
  const bool notify = first.starts_with("NOTIFY "), answer = first.starts_with("HTTP/1.1 200");
  if (!notify && !answer) return no("neither NOTIFY nor an answer");
  io::Headers headers;
  for (int line = 0; end != std::string_view::npos && line < kMaxLines; ++line) {
    if (line == 0) text.remove_prefix(end + 1);
    const auto stop = text.find('\n');
    const auto field = text.substr(0, stop);
    if (const auto colon = field.find(':'); colon != std::string_view::npos)
      headers[trim(field.substr(0, colon))] = trim(field.substr(colon + 1));
    if (stop == std::string_view::npos) break;
    text.remove_prefix(stop + 1);
  }
  const auto kind = headers[notify ? "NT" : "ST"];
  if (!kind.starts_with(kService)) return no("another service: " + kind.substr(0, 64));
  SsdpService out;
  out.gone = headers["NTS"] == "ssdp:byebye";
  const auto usn = headers["USN"];
  if (usn.starts_with("uuid:"))
    out.uuid =
        usn.substr(5, usn.find("::") == std::string::npos ? std::string::npos : usn.find("::") - 5);
  auto place = headers["AL"].empty() ? headers["LOCATION"] : headers["AL"];
  std::erase_if(place, [](char c) { return c == '<' || c == '>' || c == '"'; });
  if (place.empty() && out.gone) place = "https://" + sender.str();
  const auto url = io::Url::parse(place);
  if (!url || url->scheme != "https") return no("no https address: " + place.substr(0, 128));
  const auto host = Ipv4::parse(url->host);
  if (!host) return no("its address is a name: " + url->host.substr(0, 64));
  if (*host != sender) return no(fmt::format("{} announces {}", sender.str(), host->str()));
  out.url = "https://" + url->host + (url->port == 443 ? "" : fmt::format(":{}", url->port));
  return out;
}

std::string ssdpSearch(int seconds) {
  return fmt::format(
      "M-SEARCH * HTTP/1.1\r\nHOST: {}:{}\r\nMAN: \"ssdp:discover\"\r\nMX: {}\r\nST: {}\r\n\r\n",
      kSsdpGroup, kSsdpPort, seconds, kService);
}

Machine sightingOf(const SsdpService& service) {
  Machine machine;
  machine.bmc = service.url;
  machine.seen_by = {"ssdp"};
  machine.note = "announced by SSDP, not asked yet";
  return machine;
}

}  // namespace muster::discovery
