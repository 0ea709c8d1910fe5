// SPDX-License-Identifier: Apache-2.0
#include "cli/view/findings_view.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "lifecycle/model/json.h"

namespace muster::cli {

std::string findingsText(const std::vector<lifecycle::Finding>& findings) {
  if (findings.empty()) return "no finding is open\n";
  std::string out;
  for (const auto& finding : findings) {
    out += fmt::format(
        "{}  {}  {}  raised by {}, {}\n    {}\n", printable(finding.facet.subject.str()),
        printable(finding.facet.facet.str()), lifecycle::severityWord(finding.severity),
        finding.source.empty() ? "an older muster, which did not say" : printable(finding.source),
        muster::toString(finding.at), printable(finding.text));
    if (!finding.what_to_do.empty())
      out += fmt::format("    → {}\n", printable(finding.what_to_do));
  }
  return out;
}

std::string findingsJson(const std::vector<lifecycle::Finding>& findings) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& finding : findings) out.push_back(toJson(finding));
  return jsonText(out, 2) + "\n";
}

}  // namespace muster::cli
