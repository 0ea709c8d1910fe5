// SPDX-License-Identifier: Apache-2.0
// muster bmc: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/site/options.h"
#include "cli/commands/node_args.h"
#include "cli/exit_code.h"

#include <string>

namespace muster::cli {

int bmcShow(const app::Options& options, const NodesArgs& args);
struct BmcPowerArgs {
  std::string node, action, confirm, reason;
  bool ipmi = false, force = false;
  bool override_inventory = false;  ///< approvals and windows
};
int bmcPower(const app::Options& options, const BmcPowerArgs& args);
struct BmcBootArgs {
  std::string node, from, uri;
  bool persistent = false;
};
int bmcBoot(const app::Options& options, const BmcBootArgs& args);
struct BmcBootOrderArgs {
  std::string node, first;
};
int bmcBootOrder(const app::Options& options, const BmcBootOrderArgs& args);
struct BmcMediaArgs {
  std::string node, insert;
  bool eject = false;
};
int bmcMedia(const app::Options& options, const BmcMediaArgs& args);
struct BmcLocateArgs {
  std::string node, state;
};
int bmcLocate(const app::Options& options, const BmcLocateArgs& args);
struct BmcChangeArgs {
  std::string nodes;
  bool yes = false;  ///< else only shown
};
int bmcRotate(const app::Options& options, const BmcChangeArgs& args);
int bmcCertificate(const app::Options& options, const BmcChangeArgs& args);
int bmcTrustReset(const app::Options& options, const NodesArgs& args);
int bmcAuthReset(const app::Options& options, const NodesArgs& args);
int bmcForgetTpm(const app::Options& options, const NodesArgs& args);
int bmcForgetKey(const app::Options& options, const NodesArgs& args);
int bmcRevokeKey(const app::Options& options, const NodesArgs& args);
struct BmcApproveKeyArgs {
  std::string node, fingerprint;
};
int bmcApproveKey(const app::Options& options, const BmcApproveKeyArgs& args);

}  // namespace muster::cli
