// SPDX-License-Identifier: Apache-2.0
// DHCP by hand: what firmware and iPXE send, and what they read.
#pragma once

#include "base/ids.h"

#include <arpa/inet.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::provision {

struct Offer {
  int kind = 0;  ///< option 53: 2 an offer, 5 the confirmation, 6 a refusal
  std::string address, file, vendor_class, router, tftp_server, dhcp_server;
  std::string pxe;  ///< option 43: what PXE firmware is to choose from
};

inline std::string addressText(std::string_view four_bytes) {
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, four_bytes.data(), text, sizeof text);
  return text;
}

inline constexpr int kHttpArch = 16;

/// A DHCPDISCOVER as firmware sends it; every one has a transaction number (xid, 4 bytes) of its
/// own.
inline std::string discover(const Mac& mac, std::optional<int> arch, bool ipxe) {
  std::string packet(236, '\0');
  packet[0] = 1, packet[1] = 1, packet[2] = 6;
  static std::uint32_t transaction = 0;
  ++transaction;
  packet.replace(4, 4, reinterpret_cast<const char*>(&transaction), 4);
  packet[10] = '\x80';  // answer by broadcast
  unsigned bytes[6];
  std::sscanf(mac.str().c_str(), "%x:%x:%x:%x:%x:%x", &bytes[0], &bytes[1], &bytes[2], &bytes[3],
              &bytes[4], &bytes[5]);
  for (int i = 0; i < 6; ++i) packet[28 + i] = static_cast<char>(bytes[i]);
  const auto option = [&](int number, const std::string& value) {
    packet += static_cast<char>(number);
    packet += static_cast<char>(value.size());
    packet += value;
  };
  packet += "\x63\x82\x53\x63";
  option(53, "\x01");
  option(55, "\x01\x03\x06\x3c\x42\x43");
  if (arch) option(93, std::string{'\0', static_cast<char>(*arch)});
  if (arch == kHttpArch)
    option(60, "HTTPClient:Arch:00016:UNDI:003001");
  else if (arch)
    option(60, "PXEClient:Arch:0000" + std::to_string(*arch) + ":UNDI:003016");
  if (ipxe) option(77, "iPXE");
  if (ipxe) option(175, std::string("\xb1\x02\x1a\xf4", 4));
  return packet + '\xff';
}

/// The DHCPREQUEST that takes what was offered to `question`.
inline std::string requestFor(std::string question, const Offer& offer) {
  question[242] = 3;
  question.pop_back();  // the end mark
  for (const auto& [option, address] :
       {std::pair('\x32', offer.address), std::pair('\x36', offer.dhcp_server)}) {
    in_addr four_bytes{};
    ::inet_pton(AF_INET, address.c_str(), &four_bytes);
    question += std::string{option, '\x04'} +
                std::string(reinterpret_cast<const char*>(&four_bytes), sizeof four_bytes);
  }
  return question + '\xff';
}

/// What `packet` says to `question`; nothing if it answers another one: of two servers the slower
/// is heard in the next round.
inline std::optional<Offer> parseOffer(std::string_view packet, std::string_view question) {
  const auto same = [&](std::size_t at, std::size_t bytes) {
    return packet.substr(at, bytes) == question.substr(at, bytes);
  };
  if (packet.size() < 240 || packet[0] != 2 || !same(4, 4) || !same(28, 6)) return std::nullopt;
  Offer offer;
  offer.address = addressText(packet.substr(16, 4));
  offer.tftp_server = addressText(packet.substr(20, 4));
  offer.file = std::string(packet.substr(108, 128).data());
  for (std::size_t at = 240; at + 1 < packet.size() && packet[at] != '\xff';
       at += 2 + static_cast<unsigned char>(packet[at + 1])) {
    if (packet[at] == 53) offer.kind = packet[at + 2];
    if (packet[at] == 3) offer.router = addressText(packet.substr(at + 2, 4));
    if (packet[at] == 43)
      offer.pxe = std::string(packet.substr(at + 2, static_cast<unsigned char>(packet[at + 1])));
    if (packet[at] == 54) offer.dhcp_server = addressText(packet.substr(at + 2, 4));
    if (packet[at] == 60)
      offer.vendor_class =
          std::string(packet.substr(at + 2, static_cast<unsigned char>(packet[at + 1])));
    if (packet[at] == 67)
      offer.file = std::string(packet.substr(at + 2, static_cast<unsigned char>(packet[at + 1])));
  }
  if (const auto end = offer.file.find('\0'); end != std::string::npos) offer.file.resize(end);
  return offer;
}

}  // namespace muster::provision
