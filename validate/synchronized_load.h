// SPDX-License-Identifier: Apache-2.0
// Synchronized load: the nodes of a rack start a gate's load at one moment, because a person asked
// for it (`validate run --synchronized-load`). It shows what staggered starts hide: whether the
// rack's supplies and breakers carry the load step.
#pragma once

#include "base/result.h"
#include "inventory/model/node.h"
#include "validate/power_budget.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::validate {

class SynchronizedLoad {
 public:
  using Time = PowerBudget::Time;
  struct Wait {
    std::chrono::milliseconds after;
    std::string why;
  };

  /// From now on the nodes of each rack start their gates at one moment. Returns a line per rack
  /// for people. Errors: InvalidInput with every rack whose power does not suffice or is not
  /// declared, and the nodes that are in no rack; then nothing changes
  Result<std::vector<std::string>> request(const inventory::Cluster& cluster,
                                           const std::vector<NodeName>& nodes);
  /// Nobody asks for it any more.
  void end();
  bool isRequested(const inventory::Node& node) const;

  /// The node stands ready for this gate's load. Nullopt: it begins now, its power and that of the
  /// others is taken. Errors: Conflict when others have not come for kGather: a step without them
  /// would not be the one that was asked for
  Result<std::optional<Wait>> ready(const inventory::Node& node, const std::string& gate,
                                    PowerBudget& power, Time now);
  /// It runs already, from before a restart: nobody waits for it.
  void started(const inventory::Node& node, const std::string& gate);
  /// It failed: it comes to no other gate, and nobody waits for it.
  void leave(const inventory::Node& node);

  static constexpr std::chrono::seconds kRetryAfter{
      2};  ///< a node that waits asks again after so long
  static constexpr std::chrono::seconds kLead{
      3};  ///< more than that: all know the moment before it is there
  static constexpr std::chrono::minutes kGatherTimeout{
      10};  ///< since the last one came; who is under load in another gate has as long as that
            ///< takes

 private:
  struct Step {
    std::set<NodeName> ready;
    std::optional<Time> last_came, begins;
    bool given_up = false;
  };
  std::vector<NodeName> missing(const std::string& rack, const Step& step) const;
  std::optional<Wait> gather(const inventory::Node& node, Step& step, PowerBudget& power, Time now);

  std::map<std::string, std::map<NodeName, inventory::Node>> members_;  ///< by rack
  std::map<std::pair<std::string, std::string>, Step> steps_;           ///< by rack and gate
};

}  // namespace muster::validate
