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
  /// A new subscription. Source: DSP0266 14.1, DSP2046 EventDestination
  io::ServerResponse subscribe(const io::ServerRequest& request);
  /// One of its subscriptions, or its test event. Nullopt: neither.
  std::optional<io::ServerResponse> post(const io::ServerRequest& request, const std::string& path);
  std::optional<io::ServerResponse> remove(const std::string& path);

  /// The first answer of a new client only says where the stream stands, so that it misses nothing
  /// from then on.
  Task<io::ServerResponse> stream(io::ServerRequest request);

 private:
  struct Event {
    std::uint64_t id = 0;
    std::string created, severity, message;
  };

  struct Subscription {
    std::string destination, context;
  };
  static nlohmann::json eventBody(const Event& event);

  BmcRuntime& bmc_;
  std::map<std::string, Subscription> subscriptions_;  ///< by id; gone with a restart of the BMC
  std::uint64_t last_subscription_ = 0;
  std::deque<Event> events_;
  std::uint64_t last_event_ = 0;
};

}  // namespace muster::lab::vbmc
