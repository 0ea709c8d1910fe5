// SPDX-License-Identifier: Apache-2.0
// Which cable it is: maker, part and serial number from the transceiver's own memory. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::links {

struct Transceiver {
  std::string vendor, part, serial;
  std::optional<double> temperature_c;
  std::string str() const;  ///< "Mellanox MCP1650-H003E26 MT2150VS01234"; empty: nothing is known
};
/// Of `ethtool -m INTERFACE`, or `mlxlink -d DEVICE -m`. nullopt: no serial number is in it (no
/// module, or a board's own wiring).
std::optional<Transceiver> parseTransceiver(std::string_view text);

}  // namespace muster::links
