// SPDX-License-Identifier: Apache-2.0
// fabric: the fabric as declared and as found: differences, cabling, plot, QoS, health, rehearsal.
#pragma once

#include "app/site/options.h"
#include "base/result.h"

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::fabric {
enum class FaultKind;
struct DiffReport;
struct FaultOutcome;
struct LinkHealthReport;
struct PortDifference;
struct RehearsalReport;
struct RenderedFile;
}  // namespace muster::fabric

namespace muster::app {

// A `fabric` is named where the inventory has several; empty: the only one.

struct DiffRequest {
  std::filesystem::path found;  ///< what ibnetdiscover printed; empty: discovered now
  std::string fabric;
};
Result<fabric::DiffReport> fabricDiff(const Options& options, const DiffRequest& request);

/// Discovers again at each interval; `changed` hears each report that differs from the one before
/// and answers whether to go on.
Result<void> watchFabric(const Options& options, std::chrono::seconds interval,
                         const std::function<bool(const fabric::DiffReport&)>& changed,
                         const std::string& fabric = {});

struct CablingSheet {
  std::string csv, summary;
};
/// `rack`: only the ends in this one; empty: all.
Result<CablingSheet> cablingSheet(const Options& options, const std::string& rack,
                                  const std::string& fabric = {});

struct PlotRequest {
  std::filesystem::path found;  ///< what ibnetdiscover printed; empty: discovered now
  bool declared_only = false;   ///< nothing is discovered
  std::string fabric;
};
/// An SVG. Errors: Unavailable (the fabric could not be discovered)
Result<std::string> plotFabric(const Options& options, const PlotRequest& request);

struct RenderedFabric {
  std::vector<fabric::RenderedFile> files;
  std::vector<Error> missing;  ///< subnet managers whose files cannot be made yet
};
/// `fabric`: empty: all of them, of several in a folder each.
Result<RenderedFabric> renderFabric(const Options& options, const std::string& fabric = {});

struct QosCheckRequest {
  std::filesystem::path switch_config;     ///< SONiC's or Cumulus'; or
  std::string switch_name;                 ///< whose it is: its declared ports are checked
  std::filesystem::path dcb_app, dcb_pfc;  ///< what a host reports
  int mtu = 0;                             ///< of that host's interface; 0: not given
  std::string fabric;
};
/// How the settings differ from the declared RoCE settings. Errors: InvalidInput (no RoCE is
/// declared), NotFound (no such switch)
Result<std::vector<fabric::PortDifference>> checkQos(const Options& options,
                                                     const QosCheckRequest& request);

struct LinkHealthRequest {
  double window_seconds = 300;
  double min_load_percent = 0;
  std::filesystem::path transceivers;          ///< their serial numbers; empty: not known
  std::filesystem::path found, before, after;  ///< readings that were made elsewhere
  std::string fabric;
};
Result<fabric::LinkHealthReport> linkHealth(const Options& options,
                                            const LinkHealthRequest& request);

struct RehearseRequest {
  std::set<fabric::FaultKind> faults;  ///< empty: all kinds
  bool one_at_a_time = false;
  std::string fabric;
};
/// Builds the declared fabric in ibsim and breaks it; `each` hears every fault as it ends.
Result<fabric::RehearsalReport> rehearseFaults(
    const Options& options, const RehearseRequest& request,
    const std::function<void(const fabric::FaultOutcome&)>& each);

}  // namespace muster::app
