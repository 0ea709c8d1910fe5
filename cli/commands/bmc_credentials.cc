// SPDX-License-Identifier: Apache-2.0
// bmc show, rotate, certificate.
#include "app/nodes/bmc_credentials.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/bmc.h"
#include "cli/commands/print_done.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

std::string_view word(bmc::Rotation rotation) {
  return rotation == bmc::Rotation::Done ? "has the next password"
         : rotation == bmc::Rotation::Interrupted
             ? "was being changed: `muster bmc rotate` finds out and ends it"
             : "has the old password";
}

std::string certificateText(const bmc::BmcTrustState& memory) {
  const auto shown = memory.pin.substr(0, 16) + "…";
  switch (memory.trust) {
    case bmc::BmcTrustBy::Pin:
      return memory.inventory_is_behind
                 ? fmt::format("certificate {} was installed by muster: write bmc_pin: {}", shown,
                               memory.pin)
                 : "certificate " + shown + " declared";
    case bmc::BmcTrustBy::Ca:
      return "certificate by the declared CA";
    case bmc::BmcTrustBy::FirstContact:
      return memory.pin.empty() ? "not met yet" : "certificate " + shown + " of first contact";
    case bmc::BmcTrustBy::Nothing:
      return "no certificate declared: it gets no password";
  }
  return {};
}

/// Each as it ends, for people alone.
app::BmcChanged printChanged(const app::Options& options) {
  if (options.json) return {};
  return [](const NodeName& node, const Result<void>& ended) {
    std::cout << fmt::format("{}: {}\n", node.str(), ended ? "done" : ended.error().str())
              << std::flush;
  };
}

nlohmann::json namesOf(const std::vector<NodeName>& nodes) {
  auto out = nlohmann::json::array();
  for (const auto& node : nodes) out.push_back(node.str());
  return out;
}

void printJson(const app::BmcChangeReport& report) {
  auto failed = nlohmann::json::object();
  for (const auto& [node, error] : report.failed) failed[node.str()] = error.str();
  nlohmann::json out = {{"asked", report.asked},
                        {"done", namesOf(report.done)},
                        {"not_begun", namesOf(report.not_begun)},
                        {"failed", std::move(failed)}};
  for (const auto& [node, pin] : report.pins_to_declare) out["bmc_pin"][node.str()] = pin;
  std::cout << jsonText(out) << '\n';
}

int printReport(const app::Options& options, const app::BmcChangeReport& report) {
  if (options.json) {
    printJson(report);
    return report.failed.empty() ? kOk : kFailed;
  }
  std::cout << fmt::format("{} of {} done", report.done.size(), report.asked);
  if (!report.not_begun.empty())
    std::cout << fmt::format(", {} not begun after {} failures; the same command goes on",
                             report.not_begun.size(), report.failed.size());
  std::cout << "\n";
  return report.failed.empty() ? kOk : kFailed;
}

/// Of a server, too. Errors: NotFound (a node, or its credential declares no next password)
Result<std::vector<app::BmcIdentity>> identitiesOf(const app::Options& options,
                                                   const std::string& nodes) {
  TRY(site, askedSite(options));
  return site->records().bmcIdentities(nodes);
}

int showRotations(const app::Options& options, const BmcChangeArgs& args) {
  const auto identities = identitiesOf(options, args.nodes);
  if (!identities) return report(identities.error());
  for (const auto& each : *identities)
    if (!each.rotates) return report(app::noNextPassword(each.node));
  std::size_t left = 0;
  std::string text;
  auto all = nlohmann::json::array();
  for (const auto& each : *identities) {
    left += each.memory.rotation != bmc::Rotation::Done;
    text += fmt::format("{}: {}\n", each.node.str(), word(each.memory.rotation));
    all.push_back({{"node", each.node.str()}, {"rotation", app::wordOf(each.memory.rotation)}});
  }
  text += fmt::format(
      "{} of {} would be changed. Nothing was done; to do it: muster bmc rotate {} --yes\n", left,
      identities->size(), args.nodes);
  return printDone(options, all, text);
}

int showSigners(const app::Options& options, const BmcChangeArgs& args) {
  const auto identities = identitiesOf(options, args.nodes);
  if (!identities) return report(identities.error());
  std::string text;
  auto all = nlohmann::json::array();
  for (const auto& each : *identities) {
    text +=
        fmt::format("{}: {} makes a key, {} signs, its certificate is trusted from then on\n",
                    each.node.str(), each.url, each.signer.empty() ? "the site's CA" : each.signer);
    all.push_back({{"node", each.node.str()}, {"bmc", each.url}, {"signer", each.signer}});
  }
  text += fmt::format("Nothing was done; to do it: muster bmc certificate {} --yes\n", args.nodes);
  return printDone(options, all, text);
}

/// Whoever serves the site changes them.
int changeByRun(const app::Options& options, app::SiteClient& site, lifecycle::RunKind kind,
                const BmcChangeArgs& args) {
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = kind, .apply = {args.nodes, false, options.command_line, ""}},
                      progress);
}

}  // namespace

int bmcShow(const app::Options& options, const NodesArgs& args) {
  const auto identities = identitiesOf(options, args.nodes);
  if (!identities) return report(identities.error());
  auto out = nlohmann::json::array();
  for (const auto& each : *identities) {
    const auto& memory = each.memory;
    out.push_back(toJson(each));
    if (!options.json)
      std::cout << fmt::format("{:<12} {}  {}{}{}\n", each.node.str(), each.url,
                               certificateText(memory),
                               memory.password_refused ? ", password refused" : "",
                               each.rotates ? fmt::format(", {}", word(memory.rotation)) : "");
  }
  if (options.json) std::cout << jsonText(out, 2) << "\n";
  return kOk;
}

int bmcRotate(const app::Options& options, const BmcChangeArgs& args) {
  if (!args.yes) return showRotations(options, args);
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) return changeByRun(options, **site, lifecycle::RunKind::BmcPassword, args);
  const auto done = app::rotateBmcPasswords(options, args.nodes, printChanged(options));
  if (!done) return report(done.error());
  const int code = printReport(options, *done);
  if (code == kOk && !options.json)
    std::cout << "When `muster bmc show` reports this for all BMCs of the credential: write the "
                 "next password into its password, and remove rotate_to\n";
  return code;
}

int bmcCertificate(const app::Options& options, const BmcChangeArgs& args) {
  if (!args.yes) return showSigners(options, args);
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) return changeByRun(options, **site, lifecycle::RunKind::BmcCertificate, args);
  const auto done = app::issueBmcCertificates(options, args.nodes, printChanged(options));
  if (!done) return report(done.error());
  const int code = printReport(options, *done);
  for (const auto& [node, pin] :
       options.json ? std::map<NodeName, std::string>() : done->pins_to_declare)
    std::cout << fmt::format(
        "{}: the inventory names the certificate that was replaced; write bmc_pin: {}\n",
        node.str(), pin);
  return code;
}

}  // namespace muster::cli
