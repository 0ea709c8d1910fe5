// SPDX-License-Identifier: Apache-2.0
// What abandoned actions may have left on a machine: images that were taken in, or sent, and that
// its next restart would activate whoever restarts it. By the facts that their operations became
// (lifecycle/model/orphaned_operation.h).
#pragma once

#include "bmc/bmc.h"
#include "firmware/baselines.h"
#include "firmware/progress.h"
#include "lifecycle/model/phase.h"

#include <string>
#include <vector>

namespace muster::firmware {

/// "firmware-staged.BIOS": wanted when there is something that nobody wants any more, so that it is
/// taken back before anything is restarted.
inline FacetName stagedFacet(const std::string& component) {
  return FacetName("firmware-staged." + component);
}
/// "" when the facet is none of these. The former name "firmware-left.BIOS" is one, too.
std::string stagedComponentOf(const FacetName& facet);

/// "left.firmware.BIOS": the operation of an abandoned action.
bool isOrphanedUpdate(const FacetName& facet);

struct PendingImages {
  std::vector<Target> images;        ///< not known to run, and not taken back
  std::vector<FacetName> facets;     ///< the facts that tell of them, and of others
  std::vector<Progress> operations;  ///< how far each abandoned action was, the newest last
  std::vector<Failure>
      failed;     ///< may be on the machine and have ended badly: not flashed again by themselves
  WallTime at{};  ///< of the newest
};
/// By the facts from before this moment.
PendingImages pendingImagesOf(const lifecycle::FactSet& facts, const lifecycle::Subject& subject,
                              WallTime before = WallTime::max());

/// The baseline wants just this image: it is not sent again but activated.
bool isWanted(const inventory::FirmwareBaseline& baseline, const Target& image);

/// Where an installation goes on that finds these images wanted: exactly where the newest action
/// was that tells of all of them, else where one was being written, else at the activation.
Progress resumeFrom(const PendingImages& pending);

/// One for each image that nobody wants.
std::vector<lifecycle::Goal> cancelStagedGoals(const PendingImages& pending,
                                               const lifecycle::Subject& subject,
                                               const inventory::FirmwareBaseline& baseline);

struct Unwanted {
  Target image;
  bool arrived = false;   ///< the BMC is known to have accepted it
  bool by_agent = false;  ///< it went by the node's agent, so the BMC knows nothing of it
  std::string task = {};  ///< the agent's, where it is known
};
std::vector<Unwanted> unwantedOf(const PendingImages& pending,
                                 const inventory::FirmwareBaseline& baseline);

/// Sees to them. Answers "" once none is left, else why a person has to. Errors: those of the BMC
Async<std::string> cancelStaged(bmc::Bmc& bmc, std::vector<Unwanted> unwanted, std::string node);

}  // namespace muster::firmware
