// SPDX-License-Identifier: Apache-2.0
// What an isolation takes from the host that it runs on: the fabric's tables, and a folder.
// Internal to app/.
#pragma once

#include "app/validation/isolation_work.h"
#include "lab/lab.h"

namespace muster::app {

class Controller;

/// Of a process that has the agents; the tables of switches are asked of the fabric that this host,
/// or its twin, sits on. All are borrowed but the options.
IsolationServices isolationServices(Controller& controller, const inventory::Cluster& cluster,
                                    const Options& options,
                                    const std::optional<lab::LabHandle>& lab,
                                    std::function<void(const std::string&)> notice);

}  // namespace muster::app
