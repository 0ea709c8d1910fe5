// SPDX-License-Identifier: Apache-2.0
// Tasks as the TaskService lists them, and how one is read.
#pragma once

#include "bmc/redfish/message_registry.h"
#include "bmc/redfish/resources.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

/// The task of an accepted upload: Location, Location…/Monitor, the body's @odata.id or Id, or a
/// message's argument.
/// "" when the answer names none.
std::string taskUriOf(const RedfishReply& reply);
/// Reads a Task resource or a task monitor's answer.
TaskStatus taskStatusOf(const RedfishReply& reply, std::string_view staged_state = {});

/// A URI without the mark behind it, by which an update strategy knows what is its own.
std::string withoutMark(const std::string& uri);

class RedfishTasks {
 public:
  explicit RedfishTasks(RedfishResources& resources) : resources_(resources) {}

  /// Errors: NotFound (it is gone; a new one is given its time to appear)
  Async<TaskStatus> read(std::string uri);
  struct Listed {
    std::string uri;
    bool running = false;
  };
  /// Oldest first. Errors: Unavailable (the list was not read as a whole)
  Async<std::vector<Listed>> list();

 private:
  Task<TaskStatus> inItsWords(TaskStatus status, Json body);

  RedfishResources& resources_;
  UntilForgotten<std::string> collection_;
  MessageRegistries registries_{resources_};
};

}  // namespace muster::bmc
