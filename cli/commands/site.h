// SPDX-License-Identifier: Apache-2.0
// init and doctor: a site's first day.
#pragma once

#include "app/doctor/doctor.h"
#include "app/site/new_inventory.h"
#include "cli/exit_code.h"

namespace muster::cli {

struct InitArgs {
  app::SiteAnswers answers;
};
int initSite(const app::Options& options, const InitArgs& args);

struct DoctorArgs {
  app::DoctorRequest request;
  std::filesystem::path access_file;  ///< empty: the usual one
};
int doctor(const app::Options& options, const DoctorArgs& args);

}  // namespace muster::cli
