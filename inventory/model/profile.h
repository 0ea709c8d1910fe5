// SPDX-License-Identifier: Apache-2.0
// Profile: what a kind of node should be.
#pragma once

#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/hardware.h"
#include "inventory/model/rails.h"
#include "inventory/model/storage.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

struct Expectation {
  std::optional<int> gpus;
  std::string gpu_model;  ///< substring of the NVML name
  std::optional<int> nics;
  std::optional<int> memory_gib_min;
  std::optional<int> cpus_min;
  std::vector<PartRule> parts;
};

enum class BootMode { Bios, Uefi };

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
  std::string fabric;       ///< empty: not on a fabric
  std::vector<Rail> rails;  ///< its HCAs on the fabric; empty: mlx5_0, mlx5_1, …
  std::string bmc_credential = "bmc";
  BmcTrust bmc_trust = {};  ///< of BMCs whose nodes say nothing of their own
  BootMode boot = BootMode::Uefi;
  bool secure_boot =
      false;  ///< firmware checks signatures: shim, signed GRUB and a signed kernel instead of iPXE
  std::vector<std::string> kernel_args;
  std::string disk;  ///< "serial:…", "wwn:…", "smallest" or "size:…"; empty: the only disk, refused
                     ///< when there are several
  std::optional<RootLayout> root;      ///< nullopt: a partition of one disk
  std::vector<StorageSet> storage;     ///< its other disks
  std::string user_data;               ///< content for cloud-init (NoCloud); empty: none
  std::vector<std::string> mounts;     ///< file systems, by name
  std::optional<ConsoleSpec> console;  ///< nullopt: of a libvirt domain its own, else none
  std::optional<IpmiSpec> ipmi;        ///< nullopt: Redfish alone
  std::optional<PowerHook> pdu;        ///< nullopt: only the BMC cuts standby power, where it can
  std::optional<BmcCertificateSpec> bmc_certificate;
  std::optional<TpmSpec> tpm;      ///< nullopt: no machine is asked for its TPM
  std::optional<int> power_watts;  ///< that a node draws under full load
};

}  // namespace muster::inventory
