// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/sonic_asic.h"

#include "base/io/crypto.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::fabric {

namespace {

struct Platforms {
  std::string_view begins;
  SonicAsic asic;
};
/// What sonic-buildimage says of its platforms (device/*/*/platform_asic, November 2026).
constexpr std::array kPlatforms{
    Platforms{"x86_64-mlnx_", SonicAsic::Mellanox},
    Platforms{"x86_64-nvidia_sn", SonicAsic::Mellanox},
    Platforms{"x86_64-accton_as9516_32d", SonicAsic::Barefoot},
    Platforms{"x86_64-accton_wedge100bf_", SonicAsic::Barefoot},
    Platforms{"x86_64-arista_7170", SonicAsic::Barefoot},
    Platforms{"x86_64-ingrasys_s9280_64x", SonicAsic::Barefoot},
    Platforms{"x86_64-netberg_aurora_610", SonicAsic::Barefoot},
    Platforms{"x86_64-netberg_aurora_710", SonicAsic::Barefoot},
    Platforms{"x86_64-netberg_aurora_750", SonicAsic::Barefoot},
    Platforms{"x86_64-wnc_osw1800", SonicAsic::Barefoot},
};

constexpr std::string_view kLegal =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/// A name as a file's, in no other folder and no other switch's: one that is none ends in a digest.
std::string fileName(std::string_view switch_name) {
  constexpr std::size_t kMostBytes = 120, kDigestBytes = 8;
  const bool is_legal = switch_name.find_first_not_of(kLegal) == std::string_view::npos &&
                        !switch_name.starts_with('.') && switch_name.size() <= kMostBytes;
  std::string out(switch_name.substr(0, kMostBytes));
  if (is_legal) return out;
  std::ranges::replace_if(
      out, [](char c) { return kLegal.find(c) == std::string_view::npos; }, '-');
  out.erase(0, out.find_first_not_of(".-"));
  return fmt::format("{}{}{}", out, out.empty() ? "x" : "-",
                     io::sha256Hex(switch_name).substr(0, kDigestBytes));
}

}  // namespace

std::string_view toString(SonicAsic asic) {
  switch (asic) {
    case SonicAsic::Mellanox:
      return "mellanox";
    case SonicAsic::Barefoot:
      return "barefoot";
    case SonicAsic::Other:
      break;
  }
  return "";
}

SonicAsic sonicAsicOf(std::string_view platform) {
  for (const auto& known : kPlatforms)
    if (platform.starts_with(known.begins)) return known.asic;
  return SonicAsic::Other;
}

bool mapsPfcToGroups(SonicAsic asic) { return asic != SonicAsic::Other; }

std::string sonicFile(SonicAsic asic, std::string_view switch_name) {
  const auto family = toString(asic);
  return fmt::format("roce/sonic/{}{}{}.json", family, family.empty() ? "" : "/",
                     fileName(switch_name));
}

}  // namespace muster::fabric
