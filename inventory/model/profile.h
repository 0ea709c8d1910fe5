// SPDX-License-Identifier: Apache-2.0
// Profile: what a kind of node should be.
#pragma once

#include "base/architecture.h"
#include "base/held.h"
#include "inventory/model/fwd.h"
#include "inventory/model/section.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

struct Expectation {
  std::optional<int> gpus;
  std::string gpu_model;  ///< whole words of the NVML name
  std::optional<int> nics;
  std::optional<int> memory_gib_min;
  std::optional<int> cpus_min;
  Parts<PartRule> parts;
};

enum class BootMode { Bios, Uefi };
/// What the RAM OS is started from.
enum class BootSource { Pxe, VirtualMedia };

struct Profile {
  std::string name;
  Expectation expect;
  std::string image;
  std::vector<std::string> drivers;
  std::string firmware;  ///< baseline name; empty: none
  std::map<std::string, std::string>
      bios;  ///< attribute → value, as the BMC spells both; others are left alone
  std::vector<std::string> gates;
  std::string pool;
  std::string fabric;  ///< empty: not on a fabric; of several the compute fabric
  std::vector<std::string> other_fabrics;  ///< ordered by name
  Parts<Rail> rails;  ///< its HCAs on its fabrics; empty: mlx5_0, mlx5_1, … on the only one
  std::string bmc_credential = "bmc";
  Held<BmcTrust> bmc_trust = {};  ///< of BMCs whose nodes say nothing of their own
  BootMode boot = BootMode::Uefi;
  bool secure_boot =
      false;  ///< firmware checks signatures: shim, signed GRUB and a signed kernel instead of iPXE
  BootSource boot_source = BootSource::Pxe;
  std::vector<std::string> kernel_args;
  std::string disk;  ///< "serial:…", "wwn:…", "smallest" or "size:…"; empty: the only disk, refused
                     ///< when there are several
  HeldOptional<RootLayout> root;          ///< nullopt: a partition of one disk
  Parts<StorageSet> storage;              ///< its other disks
  HeldOptional<HardwareRaid> raid;        ///< nullopt: RAID controllers are left as they are
  std::string user_data;                  ///< content for cloud-init (NoCloud); empty: none
  HeldOptional<NodeNetworkSpec> network;  ///< nullopt: the NIC that boots alone, with its address
  std::vector<std::string> mounts;        ///< file systems, by name
  HeldOptional<ConsoleSpec> console;      ///< nullopt: of a libvirt domain its own, else none
  HeldOptional<IpmiSpec> ipmi;            ///< nullopt: Redfish alone
  HeldOptional<PowerHook> pdu;  ///< nullopt: only the BMC cuts standby power, where it can
  HeldOptional<BmcCertificateSpec> bmc_certificate;
  HeldOptional<TpmSpec> tpm;                ///< nullopt: no machine is asked for its TPM
  std::optional<int> power_watts;           ///< that a node draws under full load
  Architecture arch = Architecture::Amd64;  ///< of its nodes' processors
};

}  // namespace muster::inventory
