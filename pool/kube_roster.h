// Roster: who is in the Kubernetes cluster and what runs there. Many looks at once are two questions, not two for each node: those that
// come in the same turn of the loop share one list of nodes and one of pods, and so do those of the next second. A single look asks
// for its node only.
#pragma once

#include "lifecycle/coordinate.h"
#include "pool/kube_api.h"
#include "pool/kube_objects.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::pool::kube {

inline constexpr std::chrono::seconds kRosterAge{1};  ///< an answer may be so old, but never older than our own last order

class Roster {
 public:
  struct Entry {
    Node node;
    std::vector<Pod> pods;
  };

  Roster(Api& api, Clock& clock) : api_(api), clock_(clock) {}

  /// nullopt: there is no such node. Errors: those of Api
  Async<std::optional<Entry>> look(std::string name);
  Async<std::optional<Node>> node(std::string name);
  Async<std::vector<Pod>> podsOf(std::string name);
  /// Something was ordered: what was listed before is worth nothing.
  void ordered() {
    ++orders_;
    list_.reset();
  }

 private:
  using Entries = std::map<std::string, Entry>;
  struct Round {
    std::set<std::string> names;  ///< that are asked for
    Result<std::shared_ptr<const Entries>> answer = fail(ErrorCode::Unavailable, "the look at Kubernetes was broken off");
    lifecycle::Signal answered;
  };
  Async<std::shared_ptr<const Entries>> ask(std::set<std::string> names);
  Async<std::shared_ptr<const Entries>> askEach(std::set<std::string> names);
  Async<std::shared_ptr<const Entries>> askAll();
  Task<void> lead(std::shared_ptr<Round> round);

  Api& api_;
  Clock& clock_;
  std::shared_ptr<Round> gathering_;     ///< not asked yet
  std::shared_ptr<const Entries> list_;  ///< of all nodes
  std::chrono::steady_clock::time_point listed_at_{};
  std::uint64_t orders_ = 0;
  bool may_list_ = true;                 ///< false: the account lacks "list nodes"; each node is asked for by itself then
};

}  // namespace muster::pool::kube
