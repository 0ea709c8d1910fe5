// SPDX-License-Identifier: Apache-2.0
// How an image gets to a BMC and how its update is followed: one strategy a way, chosen by the
// quirk row and by what the UpdateService offers. What of an update is no task of the TaskService
// has a mark behind its URI; the strategy that has set the mark follows it.
#pragma once

#include "bmc/firmware_images.h"
#include "bmc/redfish/resources.h"
#include "bmc/redfish/tasks.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

/// Of an image that was read and inspected, for one component.
struct Upload {
  Json service;  ///< the UpdateService
  FirmwareUpdate update;
  FirmwareImage image;
  Json parameters;  ///< Targets, OperationApplyTime, Oem
};

class UpdateStrategy {
 public:
  virtual ~UpdateStrategy() = default;
  virtual UpdateMethod method() const = 0;
  virtual bool isOffered(const Json& service) const = 0;
  /// Any status is an answer.
  virtual Async<RedfishReply> send(Upload upload) = 0;
  /// Where an update that was accepted is followed. Errors: Corrupt (the answer does not say)
  virtual Result<std::string> followedAt(const RedfishReply& reply, const std::string& service_uri,
                                         const std::string& component) const = 0;

  /// A task of the TaskService, as it is followed.
  virtual std::string marked(std::string task_uri) const { return task_uri; }
  /// Whether the URI bears a mark of this strategy.
  virtual bool follows(const std::string& uri) const;
  virtual Async<TaskStatus> follow(std::string uri);
  /// The listed tasks, and what this strategy knows besides.
  virtual Async<TaskList> withOwn(TaskList listed);
};

struct UpdateServices {
  RedfishResources& resources;
  FirmwareImages& images;
  RedfishTasks& tasks;
  std::function<Async<TaskList>()> all_tasks;  ///< Updates::tasks
};

/// Those that the row names, the preferred first. What is referred to outlives them.
std::vector<std::unique_ptr<UpdateStrategy>> makeUpdateStrategies(const Quirks& quirks,
                                                                  UpdateServices services);

/// The answer to an upload that names its task. Errors: Corrupt (it names none)
Result<std::string> namedTask(const RedfishReply& reply, const std::string& address,
                              const std::string& component);
/// An upload may take as long as a slow BMC needs for so many bytes.
std::chrono::milliseconds uploadTimeout(std::size_t bytes);

/// Strategies of vendors, each in a file of its own.
std::unique_ptr<UpdateStrategy> makeFormFlash(UpdateServices services);
std::unique_ptr<UpdateStrategy> makeAvailableThenSimpleUpdate(UpdateServices services);
std::unique_ptr<UpdateStrategy> makeVerifiedMultipart(UpdateServices services);
/// HttpPush and multipart as others use them. `body`: as the row wants it.
Async<RedfishReply> pushFile(UpdateServices services, std::string path, FirmwareImage image,
                             std::string name);
Async<RedfishReply> pushMultipart(UpdateServices services, Upload upload);

}  // namespace muster::bmc
