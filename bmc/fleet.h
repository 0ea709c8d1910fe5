// SPDX-License-Identifier: Apache-2.0
// The fleet with its seams open, for tests and for whoever needs another transport.
#pragma once

#include "bmc/bmc.h"
#include "bmc/redfish/session.h"

namespace muster::bmc {

std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store,
                                       Clock& clock, Workers& workers,
                                       HttpClientFactory make_client, std::string libvirt_uri);

}  // namespace muster::bmc
