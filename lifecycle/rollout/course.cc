// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/course.h"

namespace muster::lifecycle {

void RolloutCourse::note(const NodeName& node, std::string text) const {
  Event event{0,
              services.clock.now(),
              EventKind::Note,
              {},
              "",
              fmt::format("rollout {}: {}", record.rollout().id, text)};
  if (!node.empty()) event.subject = Subject(node);
  if (auto stored = services.store.addEvent(event))
    event.sequence = *stored;  // the record holds what matters
  if (services.sink) services.sink(event);
}

void RolloutCourse::readOrders() {
  auto given = record.order();
  if (given)
    order = std::move(*given);
  else if (!error)
    error = given.error();
  (void)mayBegin({});
}

}  // namespace muster::lifecycle
