// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/log_content.h"

#include "base/utf8.h"
#include "lifecycle/model/facet.h"

#include <algorithm>
#include <array>

namespace muster::bmc {
namespace {

constexpr std::array kRows = {
    LogContentRow{"DiagnosticDataType", "?*", false, "DSP2046: the entry stands for a dump"},
    LogContentRow{"OemRecordFormat", "*Journal*", false, "bmcweb: the BMC's own system journal"},
    LogContentRow{"MessageId", "*BIOSPOSTCode*", false, "bmcweb: POST codes of each boot"},
    LogContentRow{"MessageId", "Security.*", false, "capture DGX H100: AuditLog"},
    LogContentRow{"MessageId", "EventLog.*", false,
                  "capture DGX H100: sessions that came and went, in the manager's EventLog"},
    LogContentRow{"EntryType", "SEL", true, "DSP2046: the entry is of the system event log"},
    LogContentRow{"OemRecordFormat", "Hpe-IML", true, "capture iLO: Integrated Management Log"},
    LogContentRow{"Oem/Lenovo/@odata.type", "*PlatformLogEntry", true, "capture XCC: PlatformLog"},
    LogContentRow{"EntryType", "Event", true,
                  "DSP2046: the entry is a Redfish event; bmcweb and NVIDIA's baseboards log "
                  "thresholds and faults so (captures GB200, GH200, DGX H100)"},
};

constexpr std::size_t kMaxResolutionBytes = 400;

struct Named {
  std::string_view id;
  int score = 0;
};
/// Dell Sel, Supermicro and AMI SEL or Log1, HPE IML, Lenovo PlatformLog, OpenBMC EventLog.
constexpr std::array<Named, 6> kNames = {{{"Sel", kDeclared},
                                          {"SEL", kDeclared},
                                          {"IML", kDeclared},
                                          {"PlatformLog", kDeclared},
                                          {"Log1", 1},
                                          {"EventLog", 1}}};

}  // namespace

std::span<const LogContentRow> logContentRows() { return kRows; }

std::optional<bool> isHardwareEntry(const Json& entry) {
  const auto row = std::ranges::find_if(kRows, [&](const LogContentRow& each) {
    const auto text = textAt(entry, each.property);
    return !text.empty() && lifecycle::matches(each.glob, text);
  });
  if (row == kRows.end()) return std::nullopt;
  return row->hardware;
}

int declaredScore(const Json& log_service) {
  const auto named =
      std::ranges::find(kNames, std::string_view(textAt(log_service, "Id")), &Named::id);
  return (textAt(log_service, "LogEntryType") == "SEL" ? 3 : 0) +
         (named == kNames.end() ? 0 : named->score);
}

LogEntry logEntryOf(const Json& entry) {
  LogEntry out{textAt(entry, "Id"), textAt(entry, "Created"), textAt(entry, "Severity"),
               textAt(entry, "Message")};
  if (out.message.empty()) out.message = textAt(entry, "MessageId");
  for (const char* path : {"Resolution", "Oem/Hpe/RecommendedAction"})
    if (out.resolution.empty())
      out.resolution = shortened(textAt(entry, path), kMaxResolutionBytes);
  if (out.resolution == "None" || out.resolution == "None.") out.resolution.clear();
  return out;
}

}  // namespace muster::bmc
