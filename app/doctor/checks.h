// SPDX-License-Identifier: Apache-2.0
// What doctor looks at, a function a subject: each adds a line for what it found, bad or not.
#pragma once

#include "app/doctor/doctor.h"
#include "app/site/options.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::inventory {
struct Cluster;
struct Network;
}  // namespace muster::inventory

namespace muster::app::doctor {

using Lines = std::vector<DoctorLine>;

inline void ok(Lines& out, std::string what, std::string text) {
  out.push_back({std::move(what), DoctorVerdict::Ok, std::move(text), {}, {}});
}

// The host itself.
/// `cluster`: null where the inventory does not load; then what every site needs.
void lookAtPrograms(const Options& options, const inventory::Cluster* cluster, Lines& out);
void lookAtTime(Lines& out);
void lookAtState(const Options& options, Lines& out);
/// Free bytes at the folder, or where it will be; `why`: what a full disk there stops.
void lookAtSpace(const std::string& what, const std::filesystem::path& folder,
                 std::uintmax_t needed_bytes, const char* why, Lines& out);
/// Whether who holds the site's keys answers, and has those of the state folder.
void lookAtSigner(const Options& options, Lines& out);
void lookAtSecrets(const inventory::Cluster& cluster, Lines& out);
void lookAtKvm(Lines& out);
void lookAtFabric(const inventory::Cluster& cluster, Lines& out);
bool isInstalled(const std::string& program);  ///< in PATH or where the system has its programs

// The provisioning network.
/// The interface that has the controller's address; empty: this host is not on it.
std::string lookAtAddress(const inventory::Network& network, Lines& out);
void lookAtPorts(const Options& options, const inventory::Network& network, Lines& out);
/// Sends one DHCPDISCOVER.
void lookForDhcp(const inventory::Network& network, const std::string& interface, Lines& out);

/// A TCP connection to each BMC (of a large fleet: to the first 512), within 3 s all together.
void lookAtBmcs(const inventory::Cluster& cluster, Lines& out);

}  // namespace muster::app::doctor
