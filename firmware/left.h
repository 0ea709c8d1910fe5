// What abandoned actions may have left on a machine: images that were taken in, or sent, and that its next restart would activate whoever
// restarts it. By the facts that their operations became (lifecycle/left.h).
#pragma once

#include "bmc/bmc.h"
#include "firmware/baselines.h"
#include "firmware/progress.h"
#include "lifecycle/phase.h"

#include <string>
#include <vector>

namespace muster::firmware {

/// "firmware-left.BIOS": wanted when there is something that nobody wants any more, so that it is taken back before anything is restarted.
inline FacetName takeBackFacet(const std::string& component) { return FacetName("firmware-left." + component); }
/// "" when the facet is none of these.
std::string takenBackOf(const FacetName& facet);

struct Left {
  std::vector<Target> images;          ///< not known to run
  std::vector<FacetName> facets;       ///< the facts that tell of them, and of others
  std::vector<Progress> ways;          ///< how far each abandoned action was
  WallTime at{};                       ///< of the newest
};
Left leftOn(const lifecycle::FactSet& facts, const lifecycle::Subject& subject);

/// The baseline wants just this image: it is not sent again but activated.
bool isWanted(const inventory::FirmwareBaseline& baseline, const Target& image);

/// Where an installation goes on that finds all of it wanted: exactly there when one action was abandoned, else at the activation.
Progress takeOver(const Left& left);

/// One for each image that nobody wants.
std::vector<lifecycle::Goal> takeBackGoals(const lifecycle::FactSet& facts, const lifecycle::Subject& subject, const inventory::FirmwareBaseline& baseline);

/// Sees to the images that nobody wants. Answers "" once none is left, else why a person has to. Errors: those of the BMC
Async<std::string> takeBack(bmc::Bmc& bmc, std::vector<Target> images, std::string node);

}  // namespace muster::firmware
