// SPDX-License-Identifier: Apache-2.0
// The logs of the machine's hardware, and the stream of events that is held open beside all
// requests.
#pragma once

#include "bmc/redfish/event_stream.h"
#include "bmc/redfish/resources.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishEvents final : public Events, public EventSource {
 public:
  explicit RedfishEvents(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<EventLog> eventLog(std::size_t limit) override;
  Async<EventStreamPosition> listen(EventStreamPosition from, std::function<void()> opened,
                                    std::function<void(std::vector<LogEntry>)> told) override;

 private:
  struct Log {
    std::string uri, entries;  ///< of the LogService, of its entries
    int declared = 0;          ///< declaredScore
    bool baseboard = false;
  };
  /// Of the system, its baseboards and the manager.
  Async<std::vector<Log>> logsOf(ResourceUris at);
  /// Nothing: it holds something else, which is asked for no more.
  Async<std::optional<std::vector<Json>>> hardwareEntries(Log log);

  RedfishResources& resources_;
  /// Whether a log is of the hardware, by its URI, as far as it had entries to say so.
  UntilForgotten<std::map<std::string, bool>> hardware_;
};

}  // namespace muster::bmc
