// SPDX-License-Identifier: Apache-2.0
// doctor: what is missing on this host before muster can work here, and the command that mends it.
// Nothing is changed. docs/adr/0303
#pragma once

#include "app/site/options.h"

#include <functional>
#include <string>
#include <vector>

namespace muster::inventory {
struct Cluster;
}

namespace muster::app {

enum class DoctorVerdict { Ok, Warning, Bad };
std::string_view wordOf(DoctorVerdict verdict);  ///< "ok", "warning", "bad"

struct DoctorLine {
  std::string what;  ///< "dhcp", "address", …
  DoctorVerdict verdict = DoctorVerdict::Ok;
  std::string text;  ///< what was found
  std::string why;   ///< what does not work with it; empty: ok
  std::string mend;  ///< a command, or what to do; empty: ok
};

struct DoctorRequest {
  bool without_network = false;  ///< send nothing: neither DHCP requests nor connections to BMCs
  /// What who asks looks at besides, and app does not know. `cluster`: null where the inventory
  /// does not load. Empty: nothing
  std::function<void(const inventory::Cluster* cluster, std::vector<DoctorLine>& out)> besides = {};
};

/// Looks at programs, addresses, ports, DHCP servers of others, time, disk space, the fabric's
/// port, BMCs (a TCP connection, no login), owners and modes. An inventory that does not load is a
/// finding too; what needs it is left out then.
/// Effect: one DHCPDISCOVER of a made-up MAC on the provisioning network; whoever answers keeps an
/// offer for it for a minute or so
std::vector<DoctorLine> examineHost(const Options& options, const DoctorRequest& request);

}  // namespace muster::app
