// SPDX-License-Identifier: Apache-2.0
// discover: whose certificate was compared, so that its BMC may get a password.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/controller.h"
#include "base/io/files.h"
#include "cli/commands/commands.h"
#include "cli/commands/discovery.h"
#include "discovery/approvals.h"
#include "discovery/machine_registry.h"

namespace muster::cli {
namespace {

constexpr std::size_t kMaxListBytes = 16u << 20;

bool mayAsk(const app::Options& options) {
  return !options.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

/// Nothing but the whole word counts.
bool askAbout(std::size_t count) {
  std::cout << fmt::format(
                   "Compare these {} fingerprints with what the BMCs' own displays or the delivery "
                   "papers say. Send passwords to them? Type yes: ",
                   count)
            << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes";
}

}  // namespace

Result<discovery::Approver> certificateApprover(Discovery& home, const app::Options& options,
                                                const DiscoverFlags& flags) {
  discovery::ApprovedCertificates approved;
  if (!flags.fingerprints.empty()) {
    TRY(text, io::readFile(flags.fingerprints, kMaxListBytes));
    TRY(parsed, discovery::ApprovedCertificates::parse(text, flags.fingerprints.string()));
    approved = std::move(parsed);
  }
  for (const auto& fingerprint : flags.trusted) TRY_OK(approved.add(fingerprint));
  TRY(book, discovery::MachineRegistry::read(*home.store));
  const bool must_be_declared = home.cluster.bmc_trust == inventory::BmcTrustPolicy::Declared;
  return discovery::Approver([approved = std::move(approved), book = std::move(book),
                              must_be_declared, ask = mayAsk(options),
                              json = options.json](const std::vector<discovery::Contact>& met) {
    std::map<std::string, std::string> out;
    std::vector<discovery::Contact> open;
    for (const auto& contact : met) {
      const auto before =
          std::find_if(book.machines().begin(), book.machines().end(), [&](const auto& machine) {
            return machine.bmc == contact.bmc && machine.certificate == contact.certificate;
          });
      if (approved.covers(contact)) {
        out[contact.bmc] = app::userName();
      } else if (before != book.machines().end() && !before->certificate_approved_by.empty()) {
        out[contact.bmc] = before->certificate_approved_by;
      } else {
        open.push_back(contact);
      }
    }
    if (open.empty()) return out;
    auto& terminal = json ? std::cerr : std::cout;
    terminal << "Certificates of BMCs that no node declares (SHA-256):\n"
             << discovery::contactsText(open);
    if (!must_be_declared) {
      terminal << "bmc_trust is first-contact: these BMCs get passwords now, and what they show is "
                  "pinned\n"
               << std::flush;
    } else if (!ask) {
      terminal << "bmc_trust is declared: these BMCs get no password\n" << std::flush;
    } else if (askAbout(open.size())) {
      for (const auto& contact : open) out[contact.bmc] = app::userName();
    }
    return out;
  });
}

}  // namespace muster::cli
