// SPDX-License-Identifier: Apache-2.0
// What doctor says of the access file: rows that are wrong, files that it names and nobody can
// read, names that nobody has. Beside app's examineHost, which knows no access file.
#pragma once

#include "app/doctor/doctor.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <vector>

namespace muster::api {

/// `site_ca`: the site's own authority; `cluster`: null where the inventory does not load, then
/// scopes are not looked at. A file that is not there lets in who always comes in, and is fine.
std::vector<app::DoctorLine> examineAccess(const std::filesystem::path& access_file,
                                           const std::filesystem::path& site_ca,
                                           const inventory::Cluster* cluster);

}  // namespace muster::api
