// SPDX-License-Identifier: Apache-2.0
// A virtual node as libvirt sees it. Pure: spec → XML.
#pragma once

#include "base/architecture.h"
#include "base/ids.h"
#include "lab/lab.h"
#include "lab/vbmc/machine.h"

#include <nlohmann/json_fwd.hpp>

namespace muster::lab {

/// Everything that a node's domain is made of. Values come from rack.h; nothing here depends on the
/// time or the host.
struct DomainSpec {
  std::string name;
  std::string uuid;
  std::string serial;       ///< SMBIOS system serial
  std::string disk_serial;  ///< at most 20 bytes: virtio's limit
  Mac mac;
  std::string bridge;
  int memory_mib = 0;
  int vcpus = 1;
  bool uefi = true;
  Accel accel = Accel::Tcg;
  int gpus = 0;           ///< told to the guest by SMBIOS (product_sku), see nvml/README.md
  std::string gpu_model;  ///< product_family
  Architecture arch = Architecture::Amd64;  ///< of another one than the host's: emulated
  std::filesystem::path disk, nvram, console_socket, console_log;
};

/// QEMU's id of the virtual CD, and libvirt's word for the place of it.
inline constexpr const char *kCdAlias = "ua-cd", *kCdTarget = "sda";

/// The domain for one start.
std::string domainXml(const DomainSpec& spec, const vbmc::StartOptions& start);

nlohmann::json toJson(const DomainSpec& spec);
/// Errors: Corrupt
Result<DomainSpec> domainFromJson(const nlohmann::json& json);

}  // namespace muster::lab
