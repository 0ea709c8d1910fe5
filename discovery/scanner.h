// SPDX-License-Identifier: Apache-2.0
// Scanner: asks every address whether a Redfish service is there, and surveys the machine behind
// it.
//
// The first question needs no login. A login follows only at a service that says it is Redfish,
// with the declared credentials in their order; one that was refused is remembered by the session's
// own memory and never tried there again, and in one scan no account name is refused twice at one
// BMC, so that no lock-out policy is reached. Passwords are sent only inside the ranges.
//
// The certificates of all are seen before the first password goes out, so that somebody can compare
// them. With bmc_trust: declared only BMCs whose certificate was approved, or which the inventory
// declares, get a password. Between the look and the login a BMC cannot be exchanged: the login
// insists on the certificate that was looked at.
#pragma once

#include "bmc/bmc.h"
#include "discovery/machine.h"
#include "discovery/ranges.h"

#include <functional>
#include <map>

namespace muster::discovery {

inline constexpr std::size_t kMaxConcurrent = 64;

/// A Redfish service that no node declares, as it was met without a password.
struct Contact {
  std::string bmc, vendor, product;
  std::string certificate;  ///< SHA-256, hex
};

/// Says of what was met who has approved its certificate: BMC → by whom; others are not approved.
/// Called once, before any password is sent.
using Approver = std::function<std::map<std::string, std::string>(const std::vector<Contact>& met)>;

struct ScanDeps {
  const inventory::Cluster& cluster;
  bmc::BmcFleet& bmcs;  ///< for those that nodes declare: their own credentials and pins
  lifecycle::Store& store;
  Clock& clock;
  Workers& workers;
  std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)> make_client;
  std::uint16_t port = 443;
  Approver approve = {};  ///< empty: nobody approves anything
};

struct ScanReport {
  std::size_t addresses = 0, services = 0, surveyed = 0;
  std::size_t unapproved =
      0;  ///< BMCs that got no password because nobody has approved their certificate
  std::vector<std::string> problems;  ///< "10.20.250.7: …", of services that were found
};

/// The memory of a BMC that no node declares: one a credential, so that several refusals can be
/// remembered.
NodeName undeclaredBmcKey(const std::string& url, const std::string& credential);

/// Shape:  ranges → sightings, one by one as they come, and a report
/// Effect: none at the machines but sessions that are closed again
Async<ScanReport> scan(ScanDeps deps, Ranges ranges, std::function<void(Machine)> seen);

}  // namespace muster::discovery
