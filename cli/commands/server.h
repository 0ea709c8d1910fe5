// SPDX-License-Identifier: Apache-2.0
// server: the process that stays: it watches, and it is asked. token: who may ask it.
#pragma once

#include "api/server.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <string>
#include <vector>

namespace muster::cli {

struct ServerArgs {
  api::ApiOptions api;
  bool api_only = false;  ///< answers, and does not watch
};
int server(const app::Options& options, const ServerArgs& args);

struct TokenCreateArgs {
  std::string owner;  ///< the person who uses it; empty: who makes it
  std::string name, role = "viewer";
  int hours = 24 * 90;
  std::string pools, racks, nodes;  ///< comma-separated; a hostlist
};
int tokenCreate(const app::Options& options, const TokenCreateArgs& args);
int tokenList(const app::Options& options);
struct TokenRevokeArgs {
  std::string token;  ///< id or name
};
int tokenRevoke(const app::Options& options, const TokenRevokeArgs& args);

}  // namespace muster::cli
