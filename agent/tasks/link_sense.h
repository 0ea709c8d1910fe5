// SPDX-License-Identifier: Apache-2.0
// A node's own InfiniBand ports over the last hour: what their counters prove of the cables. It
// reads sysfs only.
#pragma once

#include "wire/health.h"
#include "wire/links/verdict.h"

#include <deque>
#include <filesystem>
#include <map>

namespace muster::agent {

/// `port`: /sys/class/infiniband/DEVICE/ports/N
links::PortReading readSysfsPort(const std::filesystem::path& port);

class LinkSense {
 public:
  /// One look at a port. Symptoms: "network.bit-errors" when the BER of at most the last hour is
  /// proven to be above 1e-12, "network.recoveries". A cleared counter, or a link of another rate
  /// than before, begins anew. `up_for`: since the node's boot
  std::vector<wire::Symptom> see(const std::string& id, const links::PortReading& now,
                                 std::string_view sysfs_rate, std::chrono::seconds up_for);

 private:
  struct Seen {
    std::chrono::seconds at;
    links::PortReading reading;
  };
  struct Past {
    std::string rate;
    std::deque<Seen> seen;  ///< one a minute at most
  };
  std::map<std::string, Past> ports_;
};

}  // namespace muster::agent
