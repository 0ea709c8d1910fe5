// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/sonic_asic.h"

#include <fmt/format.h>

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
  return fmt::format("roce/sonic/{}{}{}.json", family, family.empty() ? "" : "/", switch_name);
}

}  // namespace muster::fabric
