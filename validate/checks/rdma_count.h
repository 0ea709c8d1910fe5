// rdma.count: the RDMA devices that the kernel has, counted exactly.
#pragma once

#include "validate/checks/catalogue.h"

#include <filesystem>

namespace muster::validate {

/// `folder`: /sys/class/infiniband, which is not there while no RDMA driver is loaded.
Verdict countRdmaDevices(const std::filesystem::path& folder, int expected);

}  // namespace muster::validate
