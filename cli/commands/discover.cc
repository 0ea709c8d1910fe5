// SPDX-License-Identifier: Apache-2.0
// discover: what was seen, looking for more, and adding machines to the inventory.
#include "app/nodes/discovery.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/discover.h"
#include "discovery/approvals.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <iostream>

namespace muster::cli {
namespace {

std::string stateOf(const app::DiscoveredMachine& seen) {
  const auto& machine = seen.machine;
  if (!seen.node.empty()) return "node " + seen.node;
  if (machine.approved())
    return "approved" + (machine.node.empty() ? "" : " as " + machine.node) + ", by " +
           machine.approved_by;
  return "unknown";
}

std::string orDash(const std::string& text) { return text.empty() ? "-" : text; }

void printList(const app::Discovered& discovered) {
  if (discovered.machines.empty())
    std::cout << "nothing was seen yet: muster discover scan, or muster discover watch\n";
  for (const auto& seen : discovered.machines) {
    const auto& machine = seen.machine;
    std::cout << fmt::format("{:<20} {:<28} {:<16} {:<24} {}\n", machine.id(), orDash(machine.bmc),
                             orDash(machine.vendor), orDash(machine.model), stateOf(seen));
    if (!machine.macs.empty() || !machine.gpus.empty())
      std::cout << fmt::format("    {}{}{}\n", fmt::join(machine.macs, " "),
                               machine.gpus.empty() ? "" : "  ", machine.gpuText());
    if (!machine.note.empty()) std::cout << "    " << machine.note << "\n";
  }
  for (const auto& odd : discovered.anomalies)
    std::cout << fmt::format("finding: {} ({}): {}\n", odd.what, odd.where, odd.what_to_do);
}

void printJson(const app::Discovered& discovered) {
  nlohmann::json out{{"machines", nlohmann::json::array()}, {"findings", nlohmann::json::array()}};
  for (const auto& seen : discovered.machines) {
    out["machines"].push_back(toJson(seen));
  }
  for (const auto& odd : discovered.anomalies)
    out["findings"].push_back(
        {{"what", odd.what}, {"where", odd.where}, {"what_to_do", odd.what_to_do}});
  std::cout << jsonText(out, 2) << "\n";
}

/// Shows the certificates, and asks whether passwords may be sent, on a terminal.
class TerminalReviewer final : public app::CertificateReviewer {
 public:
  explicit TerminalReviewer(bool json)
      : out_(json ? std::cerr : std::cout),
        asks_(!json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {}

  bool approve(const std::vector<discovery::Contact>& contacts, Policy policy) override {
    out_ << "Certificates of BMCs that no node declares (SHA-256):\n"
         << discovery::contactsText(contacts);
    if (policy == Policy::NoPassword) {
      out_ << "discovery.credentials names no account: these BMCs get no password, and only their "
              "certificates are read\n"
           << std::flush;
      return false;
    }
    if (policy == Policy::TrustFirstContact) {
      out_ << "bmc_trust is first-contact: these BMCs get passwords now, and the certificates that "
              "they present are pinned\n"
           << std::flush;
      return true;
    }
    if (asks_) return ask(contacts.size());
    out_ << "bmc_trust is declared: these BMCs get no password\n" << std::flush;
    return false;
  }

 private:
  /// Nothing but the whole word counts.
  bool ask(std::size_t count) {
    out_ << fmt::format(
                "Compare these {} fingerprints with what the BMCs' own displays or the delivery "
                "papers say. Send passwords to them? Type yes: ",
                count)
         << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "yes";
  }

  std::ostream& out_;
  const bool asks_;
};

class WatchPrinter final : public app::WatchListener {
 public:
  void onListening(const std::string& interface, bool ssdp) override {
    std::cout << "listening on " << interface << " to DHCP" << (ssdp ? " and SSDP" : "")
              << "; nothing is answered" << std::endl;
  }
  void onMachine(const discovery::Machine& machine) override {
    std::cout << fmt::format("{:<20} {}", machine.id(), machine.note) << std::endl;
  }
  void onNotice(const std::string& text) override { std::cerr << "muster: " << text << "\n"; }
};

int list(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto discovered = (*site)->records().discovered();
  if (!discovered) return report(discovered.error());
  options.json ? printJson(*discovered) : printList(*discovered);
  return kOk;
}

void printAdopted(const app::Adopted& adopted) {
  for (const auto& row : adopted.rows)
    std::cout << fmt::format("{}  {}  {}\n", row.at("name"), row.at("bmc"), row.at("mac"));
  for (const auto& line : adopted.not_seen) std::cerr << "muster: " << line << "\n";
  for (const auto& line : adopted.left_out) std::cerr << "muster: left out " << line << "\n";
  std::cout << fmt::format("{} row{} added to {}\n", adopted.rows.size(),
                           adopted.rows.size() == 1 ? "" : "s", adopted.csv.string());
}

}  // namespace

int discover(const app::Options& options, const app::AdoptRequest& request) {
  if (request.csv.empty() && request.adopt.empty()) return list(options);
  if (const auto here = requireNoServer(options, "rows are written into the inventory's own files");
      !here)
    return report(here.error());
  const auto adopted = app::writeApprovedMachines(options, request);
  if (!adopted) return report(adopted.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"file", adopted->csv.string()},
                                         {"rows", adopted->rows},
                                         {"left_out", adopted->left_out},
                                         {"not_seen", adopted->not_seen}},
                          2)
              << "\n";
  else
    printAdopted(*adopted);
  return adopted->not_seen.empty() && adopted->left_out.empty() ? kOk : kWorkLeft;
}

int discoverScan(const app::Options& options, const DiscoverScanArgs& args) {
  TerminalReviewer reviewer(options.json);
  auto request = args.request;
  request.port = static_cast<std::uint16_t>(args.port);
  const auto done = app::scanForBmcs(options, request, reviewer);
  if (!done) return report(done.error());
  const auto unapproved = done->report.unapproved;
  if (options.json) {
    printJson(done->discovered);
  } else {
    printList(done->discovered);
    std::cout << fmt::format("{} addresses asked, {} Redfish services, {} machines surveyed\n",
                             done->report.addresses, done->report.services, done->report.surveyed);
    if (unapproved > 0)
      std::cout << fmt::format(
          "{} BMC{} got no password: compare the fingerprints above, keep the lines that are right "
          "in a file, and scan again with --fingerprints FILE\n",
          unapproved, unapproved == 1 ? "" : "s");
  }
  return unapproved > 0 ? kWorkLeft : kOk;
}

int discoverWatch(const app::Options& options, const DiscoverWatchArgs& args) {
  WatchPrinter printer;
  app::WatchRequest request{args.interface, std::nullopt};
  if (args.seconds > 0) request.limit = std::chrono::seconds(args.seconds);
  const auto ended = app::watchNetwork(options, request, printer);
  return ended ? kOk : report(ended.error());
}

int discoverApprove(const app::Options& options, const app::ApproveRequest& request) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto approved = (*site)->records().approveMachines(request);
  if (!approved) return report(approved.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"approved", *approved}}, 2) << "\n";
  else
    std::cout << fmt::format("approved: {}\nmuster discover --write FILE.csv writes their rows\n",
                             fmt::join(*approved, " "));
  return kOk;
}

int discoverForget(const app::Options& options, const DiscoverForgetArgs& args) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto done = (*site)->records().forgetMachines(args.machines, args.all);
  return done ? kOk : report(done.error());
}

}  // namespace muster::cli
