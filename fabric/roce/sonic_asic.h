// SPDX-License-Identifier: Apache-2.0
// The families of ASICs that SONiC's own templates of QoS and buffers tell apart.
//
// On two of them SONiC binds a map from PFC priorities to priority groups to each port, and
// computes the buffers itself (buffer_model dynamic), so that the priority groups of lossless
// traffic are rows of BUFFER_PG. On all others there is no such map, and buffermgrd writes the rows
// by what pfc_enable says. (sonic-buildimage: files/build_templates/qos_config.j2 and
// buffers_config.j2, platform/*/rules.mk; sonic-swss: cfgmgr/buffermgr.cpp)
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster::fabric {

/// asic_type in /etc/sonic/sonic_version.yml; Other: broadcom, cisco-8000, marvell-teralynx, …
enum class SonicAsic { Other, Mellanox, Barefoot };
inline constexpr std::array kSonicAsics{SonicAsic::Other, SonicAsic::Mellanox, SonicAsic::Barefoot};

/// "mellanox"; Other: empty
std::string_view toString(SonicAsic asic);
/// By `platform` of DEVICE_METADATA: "x86_64-mlnx_msn4700-r0".
SonicAsic sonicAsicOf(std::string_view platform);
/// Whether SONiC binds PFC priorities to priority groups there, and computes buffers itself.
bool mapsPfcToGroups(SonicAsic asic);
/// Where the rendered configuration of a switch is: "roce/sonic/mellanox/leaf-su1-r0.json". A name
/// that is no file's ("MF0;ib-1:SN5600/U1", "../up") is made one, with a digest.
std::string sonicFile(SonicAsic asic, std::string_view switch_name);

}  // namespace muster::fabric
