// SPDX-License-Identifier: Apache-2.0
// rdma.count and rdma.ports: the RDMA devices that the kernel has, and whether their ports are up.
#pragma once

#include "validate/checks/check_row.h"

#include <filesystem>

namespace muster::validate {

/// `folder`: /sys/class/infiniband, which is not there while no RDMA driver is loaded.
Verdict countRdmaDevices(const std::filesystem::path& folder, int expected);

/// Made by the kernel over a plain network interface (rxe, siw): no link of its own, so no rate.
bool isSoftRdma(std::string_view device);

}  // namespace muster::validate
