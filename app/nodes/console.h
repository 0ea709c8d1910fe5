// SPDX-License-Identifier: Apache-2.0
// console: a node's serial console, live, or as it was recorded.
#pragma once

#include "app/site/options.h"
#include "base/io/dialogue.h"
#include "bmc/console/boot_log.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

/// The boots that are recorded, oldest first.
Result<std::vector<bmc::KeptBoot>> recordedBoots(const Options& options, const NodeName& node);

/// NotFound: why there is none. `number`: of the boot that was asked for, where others are
/// recorded.
Error noRecordedBoot(const NodeName& node, std::optional<int> number);

struct RecordedBoot {
  bmc::KeptBoot boot;
  std::string output;  ///< as it came, terminal sequences and all
};
/// `number`: nothing: the newest. Errors: NotFound
Result<RecordedBoot> recordedBoot(const Options& options, const NodeName& node,
                                  std::optional<int> number);

/// What a recorded boot has said from a place on, at most `limit` bytes. Errors: NotFound
Result<bmc::BootPart> recordedPart(const Options& options, const NodeName& node, int number,
                                   std::uint64_t from, std::size_t limit);

/// Works with the open console until it is done.
using ConsoleUser =
    std::function<Async<void>(std::unique_ptr<io::Dialogue> line, std::string name)>;
/// Opens the console and hands it to `user`. `force`: the session that holds it is ended first.
/// Errors: NotFound (node; its profile declares no console), Conflict (another session holds it)
Result<void> attachConsole(const Options& options, const NodeName& node, bool force,
                           ConsoleUser user);

}  // namespace muster::app
