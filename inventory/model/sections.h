// SPDX-License-Identifier: Apache-2.0
// Every section of the inventory, for those who read, check or make all of it. Others include what
// they use: a change in one section must not rebuild what has nothing to do with it.
#pragma once

#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/certificates.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/hardware.h"
#include "inventory/model/images.h"
#include "inventory/model/lab.h"
#include "inventory/model/limits.h"
#include "inventory/model/monitor.h"
#include "inventory/model/mounts.h"
#include "inventory/model/networks.h"
#include "inventory/model/node.h"
#include "inventory/model/node_network.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"
#include "inventory/model/rails.h"
