// SPDX-License-Identifier: Apache-2.0
// What a number of bit errors in a time says of a link's bit error rate (BER), and what it does
// not. Pure.
//
// Errors of an idle link count as well: it sends idle symbols at its full rate, so bits are rate ×
// time, whatever the load. From FDR on, links correct errors (FEC), and the symbol counter shows
// what was left: the *effective* BER, which is what packets meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::links {

/// Bits a second of a link in ibnetdiscover's spelling ("4xNDR"), before encoding. nullopt: no such
/// width or speed.
std::optional<double> lineBitsPerSecond(std::string_view width_speed);
/// "HDR" of 53.125 Gb/s a lane; empty: no such speed.
std::string_view speedOfLane(double gbits);
/// "4xNDR" from the kernel's "400 Gb/sec (4X NDR)"; empty: it says no such thing.
std::string widthSpeedOf(std::string_view sysfs_rate);

/// What is believed of the BER after `errors` in `bits`; errors are taken as independent (Poisson).
/// A burst is one cause and many errors, so `low` may be too high then; a link that makes bursts is
/// no better for it.
struct BerBounds {
  double low = 0;   ///< with `confidence` it is not lower
  double high = 1;  ///< with `confidence` it is not higher
  double estimate = 0;
};
BerBounds berBounds(std::uint64_t errors, double bits, double confidence);
/// So many bits with no more than `errors` prove a BER below `ber`. 3.0 ÷ ber for no errors and 95
/// %.
double bitsThatProve(double ber, std::uint64_t errors, double confidence);

}  // namespace muster::links
