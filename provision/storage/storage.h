// SPDX-License-Identifier: Apache-2.0
// Storage clients: what a declared file system is on a node. Pure; the phase is in
// storage_phase.cc.
#pragma once

#include "inventory/model/fwd.h"
#include "wire/task_params.h"

#include <string>

namespace muster::provision {

/// "/scratch/a-b" → "scratch-a\x2db.mount", as systemd-escape --path does.
std::string mountUnitName(const std::string& path);
/// The systemd unit that mounts it, whole.
std::string mountUnit(const inventory::MountedSystem& storage);
/// What the agent's task is told.
wire::MountParams storageParams(const inventory::MountedSystem& storage);
/// "mounted:DIGEST": the wanted value of facet storage.NAME.
std::string storageValue(const inventory::MountedSystem& storage);

}  // namespace muster::provision
