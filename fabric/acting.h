// SPDX-License-Identifier: Apache-2.0
// What is done about a fabric that is not as declared: OpenSM is started and told, partitions are
// applied and put back; cables are moved by people, who are told which.
#pragma once

#include "fabric/inspection.h"
#include "lifecycle/model/phase.h"

namespace muster::fabric {

class FabricActing {
 public:
  FabricActing(FabricInspection& inspection, Clock& clock)
      : inspection_(inspection), manager_(inspection.manager()), clock_(clock) {}

  /// One at a time, and only where the declaration can be.
  Async<lifecycle::Outcome> act(lifecycle::FacetRef facet, lifecycle::ActContext& context);

 private:
  Async<lifecycle::Outcome> actExternal(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actSm(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> awaitSm(lifecycle::FacetRef facet, SharedPicture now,
                                    lifecycle::ActContext& context);
  Async<lifecycle::Outcome> applyPartitions(lifecycle::FacetRef facet, SharedPicture now,
                                            lifecycle::ActContext& context);
  /// Puts the former partitions back and reads every table again; in words how that went.
  Async<std::string> rollBack(SharedPicture now);
  Async<lifecycle::Outcome> actPartitions(lifecycle::FacetRef facet,
                                          lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actStandby(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actCables(lifecycle::FacetRef facet, lifecycle::ActContext& context);

  FabricInspection& inspection_;
  SubnetManager& manager_;
  Clock& clock_;
};

}  // namespace muster::fabric
