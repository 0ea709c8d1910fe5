// Facade of firmware/: every declared component at its baseline version, done only when the inventory says so.
#pragma once

#include "bmc/bmc.h"
#include "lifecycle/phase.h"

#include <memory>

namespace muster::firmware {

std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers);

}  // namespace muster::firmware
