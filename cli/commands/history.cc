// history and audit: what the journal and the log say afterwards.
#include "cli/commands/commands.h"

#include "lifecycle/audit.h"
#include "lifecycle/history.h"
#include "lifecycle/json.h"

#include <iostream>

namespace muster::cli {
namespace {

std::string auditText(const lifecycle::AuditReport& report) {
  std::string out;
  for (const auto& problem : report.problems) out += "TAMPERED: " + problem + "\n";
  if (!report.has_expected) out += "TAMPERED: the hash that was asked for is not in the chain: it was written anew, or this is another store\n";
  out += fmt::format("{} entries since #{}; newest link {}, hash {}\n", report.entries, report.ends.begins_after + 1, report.ends.link,
                     report.ends.hash.empty() ? "(none)" : report.ends.hash);
  if (report.ok()) out += "the chain is whole; keep the hash elsewhere and ask for it later: muster audit verify --expect HASH\n";
  return out;
}

std::string auditJson(const lifecycle::AuditReport& report) {
  const nlohmann::json out = {{"ok", report.ok()},
                              {"entries", report.entries},
                              {"begins_after", report.ends.begins_after},
                              {"link", report.ends.link},
                              {"hash", report.ends.hash},
                              {"has_expected", report.has_expected},
                              {"problems", report.problems}};
  return out.dump(2) + "\n";
}

}  // namespace

int history(const Options& options, const std::string& what, std::size_t limit) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto found = lifecycle::historyOf(**store, what, limit);
  if (!found) return report(found.error());
  std::cout << (options.json ? found->toJson() : found->text());
  return kOk;
}

int auditVerify(const Options& options, const std::string& expected) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto verified = lifecycle::verifyAudit(**store, expected);
  if (!verified) return report(verified.error());
  std::cout << (options.json ? auditJson(*verified) : auditText(*verified));
  return verified->ok() ? kOk : kFailed;
}

}  // namespace muster::cli
