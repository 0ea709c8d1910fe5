// SPDX-License-Identifier: Apache-2.0
// Machine: one that discovery has seen, declared or not, and what is known of it from whom.
#pragma once

#include "base/clock.h"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::discovery {

inline constexpr std::size_t kMaxTextBytes = 255;

struct Gpu {
  std::string model, serial;
};

struct Machine {
  std::string bmc;  ///< "https://10.20.250.7"; empty: only its NIC was heard
  std::string vendor, model, serial, uuid, bmc_version;
  std::vector<std::string> macs, bmc_macs;
  std::string boot_mac;  ///< of the NIC that asked to boot from the network
  std::string relay;     ///< that passed on what this NIC said to DHCP servers; "0.0.0.0": it was
                         ///< heard directly; "": never heard
  std::vector<Gpu> gpus;
  std::string credential;   ///< that its BMC accepted
  std::string certificate;  ///< SHA-256 of the TLS certificate that its BMC showed, hex; "": nobody
                            ///< has asked it
  std::string
      certificate_approved_by;    ///< who has said that this certificate is its own; "": nobody
  std::string note;               ///< why not everything is known
  std::set<std::string> seen_by;  ///< redfish, ssdp, dhcp
  WallTime first_seen{}, last_seen{};

  // What a person or a rule has decided.
  std::string node, profile, rack, approved_by;  ///< node: empty until a name is given

  /// What people call it by: its serial, else its BMC's address, else a MAC.
  std::string id() const;
  /// "8× NVIDIA H100 80GB HBM3"; "" without GPUs.
  std::string gpuText() const;
  bool approved() const { return !approved_by.empty(); }
};

nlohmann::json toJson(const Machine& machine);
/// Errors: Corrupt
Result<Machine> machineOf(const nlohmann::json& json);

/// What goes to a terminal and into JSON of what unknown machines say: printable ASCII, and no more
/// than this.
std::string printable(std::string_view text, std::size_t max_bytes = kMaxTextBytes);

/// False for what firmware writes where nobody has written a serial ("To Be Filled By O.E.M.",
/// zeros).
bool isRealSerial(const std::string& serial);
/// Lower case; firmware prints one SMBIOS UUID in two byte orders.
bool sameUuid(const std::string& a, const std::string& b);

}  // namespace muster::discovery
