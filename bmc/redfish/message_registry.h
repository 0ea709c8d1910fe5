// SPDX-License-Identifier: Apache-2.0
// A service's own words about what went wrong: the messages of weight, with what it says to do. A
// message that only names its MessageId is looked up in the service's registries.
#pragma once

#include "bmc/redfish/resources.h"

#include <map>
#include <string>
#include <vector>

namespace muster::bmc {

struct ServiceWords {
  std::string text, resolution;  ///< "": it says nothing
};

/// Of a failed task, or of an error's answer: messages with a severity above OK, where there are
/// any; else all. `unresolved`: ids, with their arguments, of messages without words.
/// Source: DSP0266 (Message object), DSP2046 (Task)
struct FailureMessages {
  ServiceWords words;
  struct Unresolved {
    std::string id;
    std::vector<std::string> args;
  };
  std::vector<Unresolved> unresolved;
};
FailureMessages failureMessagesOf(const Json& body);

/// "%1" and "%2" of a registry's message, filled.
std::string filledMessage(std::string_view text, const std::vector<std::string>& args);

class MessageRegistries {
 public:
  explicit MessageRegistries(RedfishResources& resources) : resources_(resources) {}
  /// What the service's registries say about a MessageId ("Update.1.0.ApplyFailed"); nothing where
  /// they cannot be read or do not know it: a failure is told without.
  Task<ServiceWords> lookUp(std::string id, std::vector<std::string> args);

 private:
  Task<Json> registryOf(std::string prefix);

  RedfishResources& resources_;
  /// Registry name → its Messages, as far as they were asked for.
  UntilForgotten<std::map<std::string, Json>> known_;
};

}  // namespace muster::bmc
