// SPDX-License-Identifier: Apache-2.0
// What arrives from the wire without any session: DHCP, SSDP and LLDP of anybody, TPM structures of
// a machine that is not trusted yet.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/tasks/lldp.h"
#include "base/io/tpm2.h"
#include "base/ip_address.h"
#include "discovery/dhcp.h"
#include "discovery/ssdp.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kMaxDatagramBytes = 9'216;
constexpr std::size_t kMaxLldpctlBytes = 32u << 10;

bool isPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void dhcp(std::string_view input) {
  if (const auto request = discovery::parseDhcp(input)) {
    require(isPrintable(request->vendor_class) && isPrintable(request->host_name),
            "DHCP: text is printable");
    (void)discovery::toJson(discovery::sightingOf(*request)).dump();
  }
  if (const auto payload = discovery::dhcpPayload(input)) {
    require(payload->data() >= input.data() &&
                payload->data() + payload->size() <= input.data() + input.size(),
            "DHCP: the payload lies within the packet");
    (void)discovery::parseDhcp(*payload);
  }
}

void ssdp(std::string_view input) {
  const auto service = discovery::parseSsdp(input, *Ipv4::parse("10.20.250.7"));
  if (!service) return;
  require(service->url.starts_with("https://10.20.250.7"), "SSDP: nobody announces somebody else");
  (void)discovery::toJson(discovery::sightingOf(*service)).dump();
}

void checkNeighbour(const wire::Neighbour& seen) {
  wire::Hardware hardware;
  hardware.neighbours = {seen};
  require(wire::parseHardware(wire::toJson(hardware)).has_value(),
          "LLDP: the controller takes what a neighbour said");
}

void lldp(std::string_view input) {
  if (input.starts_with('{') || input.starts_with('[')) {
    if (const auto all = agent::parseLldpctl(input))
      for (const auto& one : *all) checkNeighbour(one);
    (void)agent::frameSizes(input);
    return;
  }
  if (const auto one = agent::parseLldp(input)) {
    checkNeighbour(*one);
    require(isPrintable(one->switch_name) && isPrintable(one->port), "LLDP: names are printable");
  }
}

void tpm(std::string_view input) {
  if (const auto key = io::parseTpmPublic(input)) {
    (void)key->name();
    (void)key->id();
    (void)key->mayAttest();
    (void)key->mayBeEndorsement();
    (void)io::verifyTpmSignature(*key, "bytes", input);
    (void)io::makeTpmCredential(*key, key->name(), "secret");
    (void)io::checkEndorsement(*key, input, "");
  }
  if (const auto quote = io::parseTpmQuote(input))
    for (const int pcr : quote->pcrs)
      require(pcr >= 0 && pcr < io::kTpmPcrs, "TPM: a PCR's number is one of 24");
}

constexpr std::array<std::string_view, 6> kDhcpWords = {
    std::string_view("\x63\x82\x53\x63", 4), "PXEClient:Arch:00007",          "iDRAC",
    std::string_view("\x61\x11\x00", 3),     std::string_view("\x32\x04", 2), "\xff"};
constexpr std::array<std::string_view, 10> kSsdpWords = {"NOTIFY * HTTP/1.1\r\n",
                                                         "HTTP/1.1 200 OK\r\n",
                                                         "NT: ",
                                                         "ST: ",
                                                         "urn:dmtf-org:service:redfish-rest:1",
                                                         "USN: uuid:",
                                                         "::",
                                                         "NTS: ssdp:byebye",
                                                         "AL: ",
                                                         "https://10.20.250.7"};
constexpr std::array<std::string_view, 9> kLldpWords = {std::string_view("\x88\xcc", 2),
                                                        std::string_view("\x02\x07\x04", 3),
                                                        std::string_view("\x00\x00", 2),
                                                        "\"lldp\":",
                                                        "\"interface\":",
                                                        "\"chassis\":",
                                                        "\"port\":",
                                                        "\"age\":\"1 day, 02:03:04\"",
                                                        "\"value\":"};
constexpr std::array<std::string_view, 6> kTpmWords = {
    std::string_view("\xff\x54\x43\x47\x80\x18", 6),
    std::string_view("\x00\x0b", 2),
    std::string_view("\x00\x01", 2),
    std::string_view("\x00\x23", 2),
    std::string_view("\x00\x16", 2),
    std::string_view("\x00\x03", 2)};

constexpr std::array kTargets = {
    Target{"dhcp", 2'048, dhcp, kDhcpWords},
    Target{"ssdp", kMaxDatagramBytes, ssdp, kSsdpWords},
    Target{"lldp", kMaxLldpctlBytes, lldp, kLldpWords},
    Target{"tpm", 8'192, tpm, kTpmWords},
};

}  // namespace

std::span<const Target> networkTargets() { return kTargets; }

}  // namespace muster::fuzz
