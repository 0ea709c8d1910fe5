// SPDX-License-Identifier: Apache-2.0
// What the discover commands share: inventory, store and BMCs, without a controller. They change
// nothing that a controller holds.
#pragma once

#include "app/options.h"
#include "bmc/bmc.h"
#include "cli/commands/commands.h"
#include "discovery/scanner.h"
#include "inventory/inventory.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>

namespace muster::cli {

struct Discovery {
  /// The inventory may lack rows for nodes that it names. Enters the twin's network when there is
  /// one.
  static Result<std::unique_ptr<Discovery>> open(const app::Options& options);

  template <class T>
  Result<T> run(Async<T> work) {
    std::optional<Result<T>> answer;
    asio::co_spawn(context, std::move(work),
                   [this, &answer](std::exception_ptr broken, Result<T> result) {
                     if (broken) std::rethrow_exception(broken);
                     answer.emplace(std::move(result));
                     context.stop();
                   });
    context.restart();
    context.run();
    return std::move(*answer);
  }

  asio::io_context context;
  SystemClock clock;
  Workers workers{1};
  inventory::Cluster cluster;
  std::unique_ptr<lifecycle::Store> store;
  std::unique_ptr<bmc::BmcFleet> bmcs;
};

/// Shows the certificates of BMCs that no node declares, and finds out which of them somebody
/// approves: by a list, by what was approved before, and on a terminal by asking. Errors: those of
/// the list
Result<discovery::Approver> certificateApprover(Discovery& home, const app::Options& options,
                                                const DiscoverFlags& flags);

}  // namespace muster::cli
