// SPDX-License-Identifier: Apache-2.0
// DiscoveryPolicy: where machines that nobody has declared yet are looked for, and what becomes of
// them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::inventory {

/// What a machine can be told by; each value is a glob.
inline constexpr const char* kMatchFields[] = {"vendor", "model",   "serial", "uuid",     "mac",
                                               "bmc",    "bmc_mac", "gpus",   "gpu_model"};

/// The first rule whose every glob fits a machine decides about it.
struct DiscoveryRule {
  std::string name;
  std::map<std::string, std::string> match;  ///< field → glob
  std::string profile;  ///< its rows go into the CSV that this profile's nodes are read from
  std::string names;    ///< hostlist: the names that may be given, in this order
  std::string rack;
  bool approve = false;  ///< without a person
};

struct DiscoveryPolicy {
  std::vector<std::string> ranges;  ///< "10.20.250.1-10.20.250.64", "10.20.250.0/24"; what a scan
                                    ///< without arguments covers
  std::vector<std::string>
      credentials;  ///< tried in this order at a machine that no node declares; empty: none, so
                    ///< only what needs no login is seen
  std::vector<DiscoveryRule> rules;  ///< ordered by name
};

/// A CSV that nodes are read from, and for which profile.
struct NodeFile {
  std::filesystem::path path;
  std::string profile;
  std::vector<std::string> names;  ///< that the inventory names; empty: every row is wanted
};

}  // namespace muster::inventory
