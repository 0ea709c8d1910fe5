// SPDX-License-Identifier: Apache-2.0
// The system event log, and the stream of events that is held open beside all requests.
#pragma once

#include "bmc/redfish/event_stream.h"
#include "bmc/redfish/resources.h"

#include <functional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishEvents final : public Events, public EventSource {
 public:
  explicit RedfishEvents(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::vector<LogEntry>> eventLog(std::size_t limit) override;
  Async<EventStreamPosition> listen(EventStreamPosition from, std::function<void()> opened,
                                    std::function<void(std::vector<LogEntry>)> told) override;

 private:
  RedfishResources& resources_;
};

}  // namespace muster::bmc
