// SPDX-License-Identifier: Apache-2.0
#include "wire/links/bit_errors.h"

#include <boost/math/special_functions/gamma.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace muster::links {

namespace {

/// Of one lane, in Gb/s on the line. Source: InfiniBand Architecture Specification, volume 2, 5.6;
/// FDR10 is NVIDIA's own.
struct SpeedRow {
  std::string_view name;
  double gbits;
};
constexpr std::array kSpeeds = {
    SpeedRow{"SDR", 2.5},       SpeedRow{"DDR", 5},       SpeedRow{"QDR", 10},
    SpeedRow{"FDR10", 10.3125}, SpeedRow{"FDR", 14.0625}, SpeedRow{"EDR", 25.78125},
    SpeedRow{"HDR", 53.125},    SpeedRow{"NDR", 106.25},  SpeedRow{"XDR", 212.5}};
constexpr std::array kWidths = {1, 2, 4, 8, 12};
constexpr double kGiga = 1e9, kToleranceGbits = 0.01;

}  // namespace

std::optional<double> lineBitsPerSecond(std::string_view width_speed) {
  int width = 0;
  const auto* end = width_speed.data() + width_speed.size();
  auto [at, error] = std::from_chars(width_speed.data(), end, width);
  if (error != std::errc() || at == end || (*at != 'x' && *at != 'X')) return std::nullopt;
  const std::string_view speed(at + 1, static_cast<std::size_t>(end - at - 1));
  const auto row = std::find_if(kSpeeds.begin(), kSpeeds.end(),
                                [speed](const auto& each) { return each.name == speed; });
  if (row == kSpeeds.end() || std::find(kWidths.begin(), kWidths.end(), width) == kWidths.end())
    return std::nullopt;
  return width * row->gbits * kGiga;
}

std::string_view speedOfLane(double gbits) {
  const auto row = std::find_if(kSpeeds.begin(), kSpeeds.end(), [gbits](const auto& each) {
    return std::abs(each.gbits - gbits) < kToleranceGbits;
  });
  return row == kSpeeds.end() ? std::string_view{} : row->name;
}

std::string widthSpeedOf(std::string_view rate) {
  const auto open = rate.find('('), close = rate.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  std::string out(rate.substr(open + 1, close - open - 1));
  const auto x = out.find("X ");
  if (x == std::string::npos) return {};
  out.replace(x, 2, "x");
  return lineBitsPerSecond(out) ? out : std::string();
}

// The number of errors of a link that makes λ on average is at most k with the probability Q(k + 1,
// λ) and at least k with P(k, λ); so the bounds of λ are the inverses of the incomplete gamma
// functions (Garwood 1936).
BerBounds berBounds(std::uint64_t errors, double bits, double confidence) {
  if (!(bits > 0)) return {};
  const auto k = static_cast<double>(errors);
  return {errors == 0 ? 0 : boost::math::gamma_p_inv(k, 1 - confidence) / bits,
          std::min(1.0, boost::math::gamma_p_inv(k + 1, confidence) / bits), k / bits};
}

double bitsThatProve(double ber, std::uint64_t errors, double confidence) {
  return boost::math::gamma_p_inv(static_cast<double>(errors) + 1, confidence) / ber;
}

}  // namespace muster::links
