// SPDX-License-Identifier: Apache-2.0
// Drivers: packages and settings that a node needs beyond its image.
#pragma once

#include "inventory/model/package_archive.h"
#include "wire/host_settings.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

/// How a driver's kernel modules come to the kernel that runs.
enum class ModuleBuild { Packaged, Dkms, Precompiled };

struct Driver {
  std::string name;
  std::vector<std::string> packages;  ///< apt names, "name=version" pins
  std::filesystem::path repository;   ///< a folder with a flat apt repository (Packages file),
                                      ///< served to the nodes; empty: the image's own sources
  std::vector<std::string> modules;   ///< kernel modules that must be loaded afterwards
  std::map<std::string, std::string>
      verify;  ///< probe → glob of the running version: nvml.driver, module.rdma_rxe, package.NAME
  std::string preset;  ///< row of presets.cc that the keys below were filled from
  std::vector<PackageArchive> archives;
  ModuleBuild build = ModuleBuild::Packaged;
  std::string kernel;  ///< glob of the kernel release that must run; its packages are held
  std::map<std::string, std::map<std::string, std::string>>
      module_options;  ///< module → parameter → value
  std::map<std::string, std::string> sysctl;
  std::vector<std::string> kernel_args;
  std::vector<std::string> services;  ///< systemd units that must be enabled and active
  std::map<std::string, std::string>
      fabric_manager;  ///< keys of fabricmanager.cfg and their values; all others stay as packaged
  std::optional<wire::HostSettings> host;  ///< what a site wants of the system; nullopt: nothing
};

}  // namespace muster::inventory
