// SPDX-License-Identifier: Apache-2.0
// What a switch of NVIDIA (Mellanox) tells of its firmware: the data of the vendor MAD GeneralInfo.
// Pure, without muster's libraries: muster-switchfw has it too.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace muster::fabric {

inline constexpr int kVendorClass = 0x0a;  ///< of these MADs
inline constexpr int kGeneralInfoAttribute = 0x17;
using VendorData =
    std::array<unsigned char, 232>;  ///< what a MAD of this class carries behind its head

struct GeneralInfo {
  std::string firmware;  ///< "31.2012.1024"
  std::string psid;      ///< the board: "MT_0000000630"; empty: not told
};

/// nullopt: the data tell no version.
/// The short fields have 8 bits a number: 2012 would be 220. Every chip since InfiniScale IV also
/// has numbers of 32 bits; only InfiniScale III has not, and there the short ones are whole. Which
/// chip it is the device's own id says. A table of chips, as vendstat has, knows none that came
/// after it (Debian's 44.0 none after Quantum) and reads the short fields of those.
std::optional<GeneralInfo> readGeneralInfo(const VendorData& data);

/// A switch that does not tell takes all tries. Where none of the first few tells anything, as with
/// another maker's, the others are not asked; and not so many silent ones more are waited for where
/// one has told.
class Patience {
 public:
  bool isOver() const { return silent_ >= (told_ ? kMostSilent : kFirst); }
  void saw(bool told) {
    told_ = told_ || told;
    silent_ += told ? 0 : 1;
  }

 private:
  static constexpr int kFirst = 4, kMostSilent = 16;
  int silent_ = 0;
  bool told_ = false;
};

}  // namespace muster::fabric
