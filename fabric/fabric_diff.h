// SPDX-License-Identifier: Apache-2.0
// Declared against found: one answer, or one each time that it changes.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/process.h"
#include "fabric/compare/compare.h"
#include "fabric/options.h"
#include "inventory/model/fwd.h"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace muster::fabric {

/// One discovery of the whole fabric, compared with what the subnet manager sees when muster's own
/// is up. Errors: Unavailable (a MAD timed out, or the subnet manager sees other devices: an
/// incomplete discovery is no discovery)
Async<Topology> discover(io::ProcessRunner& processes, FabricOptions options);

/// The same with the names of the declaration, where devices were recognized (recognition.h).
/// `fabric`: its name; empty: the only one, here and below. Errors: InvalidInput (the declaration
/// cannot be), NotFound
Result<Topology> withDeclaredNames(const inventory::Cluster& cluster, Topology found,
                                   const std::string& fabric = {});

/// What `muster fabric diff` shows.
struct DiffReport {
  std::string fabric;
  Topology declared, found;
  Comparison comparison;
  std::string error;  ///< why there is no answer; empty: there is one
  std::string note;   ///< what the answer leaves out, and how devices were recognized
  std::map<std::string, std::string> names;  ///< of recognized devices: declared → as they answer

  static constexpr int kEqual = 0, kDeviates = 1, kNoAnswer = 2;
  int exitCode() const {
    return !error.empty() ? kNoAnswer : comparison.deviations.empty() ? kEqual : kDeviates;
  }
};
Async<DiffReport> diff(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                       FabricOptions options, std::string fabric = {});
/// The same, but for the switches' firmware, with what ibnetdiscover or iblinkinfo printed
/// elsewhere; that it printed nothing on stderr is the caller's word.
DiffReport diff(const inventory::Cluster& cluster, std::string_view found_text,
                const std::string& fabric = {});
/// Looks again and again, `pause` after each; tells the first report and each that differs from the
/// one before. Ends when `tell` answers false.
Async<void> watch(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                  FabricOptions options, std::chrono::milliseconds pause,
                  std::function<bool(const DiffReport&)> tell, std::string fabric = {});
std::string toText(const DiffReport& report);
std::string toJson(const DiffReport& report);

}  // namespace muster::fabric
