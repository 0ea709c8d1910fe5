// SPDX-License-Identifier: Apache-2.0
// What goes wrong with a virtual BMC, by rule: answers that fail, come late or never, lie in a
// field; and updates that end badly.
//
//   {"rules": [{"method": "GET", "path": "/redfish/v1/Systems/*", "status": 503, "latency_ms":
//   2000, "drop": true, "after": true,
//               "merge": {"PowerState": null}, "count": 3}],
//    "update_faults": [{"kind": "task-vanishes", "count": 1}]}
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace muster::lab::vbmc {

/// Requests that fit are answered otherwise, `count` times. What is not set stays as it is.
struct FaultRule {
  std::string method = "*", path = "*";  ///< globs
  int status = 0;                        ///< answered instead
  std::chrono::milliseconds latency{0};  ///< before anything else
  bool drop = false;                     ///< the connection breaks instead of an answer
  bool after = false;                    ///< … once the request has been carried out
  nlohmann::json merge;                  ///< laid over the body of a good answer (RFC 7396)
  int count = 1;                         ///< times left; negative: for ever
};

/// How the next update ends.
enum class UpdateFault {
  None,
  CutUpload,              ///< the connection breaks before the image is taken
  LostAnswer,             ///< … after it was taken
  TaskVanishes,           ///< the task is gone before it has ended
  TaskFails,              ///< Exception, nothing written
  CompletedNotInstalled,  ///< Completed, but the version does not move
  ExceptionButInstalled,  ///< Exception, and the version moves
  StuckMode,              ///< refused until the BMC is reset
  NoLicence,              ///< refused for good
  BmcLost,                ///< the BMC is gone for minutes in the middle
  HostSilent,       ///< components of the baseboard cannot be read for a while after the activation
  StartsAtRestart,  ///< of a NIC: the task says Starting until the host is restarted, and only then
                    ///< is the image written
  AdapterStarting,  ///< after the next restart the network adapter says Starting until there is
                    ///< another one
  AdapterDead,      ///< … for ever
  LeavesItWorse,    ///< the new image runs, and the component shows no version any more
};
std::string_view toString(UpdateFault fault);
std::optional<UpdateFault> parseUpdateFault(std::string_view text);
std::vector<UpdateFault> allUpdateFaults();

class Faults {
 public:
  /// Replaces what was there. Errors: InvalidInput with what is wrong
  Result<void> set(const nlohmann::json& json);
  nlohmann::json toJson() const;

  /// The first rule that fits, with one use less. Null: none.
  std::optional<FaultRule> take(const std::string& method, const std::string& path);
  void add(FaultRule rule) { rules_.push_back(std::move(rule)); }

  void expect(UpdateFault fault, int count = 1);
  /// Of the next update.
  UpdateFault draw();

 private:
  struct Waiting {
    UpdateFault fault;
    int count;
  };
  std::vector<FaultRule> rules_;
  std::vector<Waiting> faults_;
};

}  // namespace muster::lab::vbmc
