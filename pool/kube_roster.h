// SPDX-License-Identifier: Apache-2.0
// Roster: who is in the Kubernetes cluster and what runs there. Many looks at once are two
// questions, not two for each node: a list of nodes and one of pods (shared_list.h).
#pragma once

#include "pool/kube_api.h"
#include "pool/kube_objects.h"
#include "pool/shared_list.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::pool::kube {

class Roster {
 public:
  struct Entry {
    Node node;
    std::vector<Pod> pods;
  };

  Roster(Api& api, Clock& clock)
      : api_(api),
        list_(clock, "the query to Kubernetes was cancelled",
              [this](std::set<std::string> names) { return ask(std::move(names)); }) {}
  Roster(const Roster&) = delete;

  /// nullopt: there is no such node. Errors: those of Api
  Async<std::optional<Entry>> look(std::string name);
  Async<std::optional<Node>> node(std::string name);
  Async<std::vector<Pod>> podsOf(std::string name);
  /// Something was ordered: what was listed before is worth nothing.
  void ordered() { list_.ordered(); }

 private:
  using List = SharedList<Entry>;
  Async<List::Answer> ask(std::set<std::string> names);
  Async<List::Answer> askEach(std::set<std::string> names);
  Async<List::Answer> askAll();

  Api& api_;
  List list_;
  bool may_list_ =
      true;  ///< false: the account lacks "list nodes"; each node is asked for by itself then
};

}  // namespace muster::pool::kube
