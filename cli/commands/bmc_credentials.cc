// SPDX-License-Identifier: Apache-2.0
// bmc show, rotate, certificate.
#include "app/nodes/bmc_credentials.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/bmc.h"

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

void printChanged(const NodeName& node, const Result<void>& ended) {
  std::cout << fmt::format("{}: {}\n", node.str(), ended ? "done" : ended.error().str())
            << std::flush;
}

int printReport(const app::BmcChangeReport& report) {
  std::cout << fmt::format("{} of {} done", report.done.size(), report.asked);
  if (!report.not_begun.empty())
    std::cout << fmt::format(", {} not begun after {} failures; the same command goes on",
                             report.not_begun.size(), report.failed.size());
  std::cout << "\n";
  return report.failed.empty() ? kOk : kFailed;
}

int showRotations(const app::Options& options, const BmcChangeArgs& args) {
  const auto rotations = app::bmcRotations(options, args.nodes);
  if (!rotations) return report(rotations.error());
  std::size_t left = 0;
  for (const auto& each : *rotations) {
    left += each.state != bmc::Rotation::Done;
    std::cout << fmt::format("{}: {}\n", each.node.str(), word(each.state));
  }
  std::cout << fmt::format(
      "{} of {} would be changed. Nothing was done; to do it: muster bmc rotate {} --yes\n", left,
      rotations->size(), args.nodes);
  return kOk;
}

int showSigners(const app::Options& options, const BmcChangeArgs& args) {
  const auto signers = app::bmcCertificateSigners(options, args.nodes);
  if (!signers) return report(signers.error());
  for (const auto& each : *signers)
    std::cout << fmt::format(
        "{}: {} makes a key, {} signs, its certificate is trusted from then on\n", each.node.str(),
        each.url, each.signer.empty() ? "this controller's CA" : each.signer);
  std::cout << fmt::format("Nothing was done; to do it: muster bmc certificate {} --yes\n",
                           args.nodes);
  return kOk;
}

}  // namespace

int bmcShow(const app::Options& options, const NodesArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto identities = (*site)->records().bmcIdentities(args.nodes);
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
  const auto done = app::rotateBmcPasswords(options, args.nodes, printChanged);
  if (!done) return report(done.error());
  const int code = printReport(*done);
  if (code == kOk)
    std::cout << "When `muster bmc show` reports this for all BMCs of the credential: write the "
                 "next password into its password, and remove rotate_to\n";
  return code;
}

int bmcCertificate(const app::Options& options, const BmcChangeArgs& args) {
  if (!args.yes) return showSigners(options, args);
  const auto done = app::issueBmcCertificates(options, args.nodes, printChanged);
  if (!done) return report(done.error());
  const int code = printReport(*done);
  for (const auto& [node, pin] : done->pins_to_declare)
    std::cout << fmt::format(
        "{}: the inventory names the certificate that was replaced; write bmc_pin: {}\n",
        node.str(), pin);
  return code;
}

}  // namespace muster::cli
