// SPDX-License-Identifier: Apache-2.0
// rdma.links with a clock of the caller's: the check waits by nature.
#pragma once

#include "validate/checks/check_row.h"
#include "wire/links/counters.h"

#include <functional>

namespace muster::validate {

struct Stopwatch {
  std::function<double()> now;       ///< seconds of a clock that never goes back
  std::function<void(double)> wait;  ///< seconds
};
double steadySeconds();
Verdict measureRdmaLinks(const nlohmann::json& params, const Host& host, const Stopwatch& watch);

/// The InfiniBand ports of one device while something else loads them.
class LinkWatch {
 public:
  /// Reads once. A device without InfiniBand ports has nothing to tell.
  LinkWatch(Host host, std::string device, std::function<double()> now);
  /// What is bad beyond doubt since then: "mlx5_0/1: 4 damaged packets received".
  std::vector<std::string> complaints() const;

 private:
  struct Seen {
    std::string number, rate;
    links::PortReading reading;
  };
  const Host host_;
  const std::string device_;
  const std::function<double()> now_;
  double began_ = 0;
  std::vector<Seen> ports_;
};

}  // namespace muster::validate
