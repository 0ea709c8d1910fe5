// SPDX-License-Identifier: Apache-2.0
// Events of a virtual BMC: the EventService, and a stream of Server-Sent Events. An answer holds
// what happened since the id that the client names, or waits for it; then it ends, and the client
// comes back, as DSP0266 lets it after any end of the stream.
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

#include <deque>

namespace muster::lab::vbmc {

enum class SentEvent { ByEvent, ByEventAndLog };

class EventService {
 public:
  explicit EventService(BmcRuntime& bmc) : bmc_(bmc) {}

  void report(const std::string& severity, const std::string& message, SentEvent told);
  std::optional<nlohmann::json> resource(const std::string& path) const;
  /// The first answer of a new client only says where the stream stands, so that it misses nothing
  /// from then on.
  Task<io::ServerResponse> stream(io::ServerRequest request);

 private:
  struct Event {
    std::uint64_t id = 0;
    std::string created, severity, message;
  };

  BmcRuntime& bmc_;
  std::deque<Event> events_;
  std::uint64_t last_event_ = 0;
};

}  // namespace muster::lab::vbmc
