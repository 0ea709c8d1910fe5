// SPDX-License-Identifier: Apache-2.0
// notify: who outside is told what happens.
#pragma once

#include "app/options.h"
#include "cli/exit_code.h"

#include <string>

namespace muster::cli {

int notifyList(const app::Options& options);

struct NotifyTestArgs {
  std::string name;
};
int notifyTest(const app::Options& options, const NotifyTestArgs& args);

int notifySecret(const app::Options& options);

}  // namespace muster::cli
