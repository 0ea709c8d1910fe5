// SPDX-License-Identifier: Apache-2.0
// init: the first inventory of a site, with comments, from a few answers. docs/adr/0303
#pragma once

#include "app/site/options.h"

#include <filesystem>
#include <string>

namespace muster::app {

/// As typed; each is verified by `newInventory`.
struct SiteAnswers {
  std::string name;
  std::string network;     ///< of provisioning, "10.20.0.0/16"
  std::string controller;  ///< this host's address there; empty: the first of the network
  std::string dhcp = "authoritative";  ///< or "proxy": another server gives addresses
  std::string range;                   ///< of authoritative; empty: the last 1,024 or quarter
  std::string bmc_network;             ///< where BMCs are looked for
  std::string bmc_user = "admin";
  std::string bmc_password_file = "secrets/bmc";  ///< relative: to the inventory's folder
  std::string suite = "bookworm";                 ///< Debian's, of the first image
  std::string scheduler = "none";                 ///< or "slurm"
};

/// The text of cluster.yaml. Errors: InvalidInput (which answer, and what it must be)
Result<std::string> newInventory(const SiteAnswers& answers);

/// Writes it. Errors: Conflict (the file is there: it is never overwritten), those of the disk
Result<void> writeNewInventory(const std::filesystem::path& file, const std::string& text);

}  // namespace muster::app
