// SPDX-License-Identifier: Apache-2.0
// LLDP (IEEE 802.1AB): which switch port each NIC is cabled to. lldpd is asked where it runs; else
// frames are listened to.
#pragma once

#include "wire/messages.h"

#include <filesystem>
#include <string_view>

namespace muster::agent {

/// An Ethernet frame. The NIC is the caller's business. Errors: Corrupt (not LLDP, cut off, without
/// its three first parts)
Result<wire::Neighbour> parseLldp(std::string_view frame);
/// `lldpctl -f json`. Of several neighbours of one NIC the youngest: after a swap the old one is
/// listed until its time is over. Errors: Corrupt
Result<std::vector<wire::Neighbour>> parseLldpctl(std::string_view json);

/// What `lldpctl -f json` knows of the largest frame that each NIC's youngest neighbour takes, in
/// bytes; who does not tell is not in it.
std::map<std::string, int> frameSizes(std::string_view json);

/// Listens on every hardware NIC that has a link until each has heard a frame, or for `limit`.
/// Blocking; needs CAP_NET_RAW.
Result<std::vector<wire::Neighbour>> listenLldp(const std::filesystem::path& root,
                                                std::chrono::milliseconds limit);
/// The same on the named interfaces, with the MACs to report for them.
Result<std::vector<wire::Neighbour>> listenLldpOn(
    const std::map<std::string, std::string>& mac_by_interface, std::chrono::milliseconds limit);

}  // namespace muster::agent
