// SPDX-License-Identifier: Apache-2.0
// status, why, events, wipe: what the state folder knows.
#include "base/json_output.h"
#include "base/limits.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"

#include "app/state_folder.h"
#include "cli/session.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/planner/explain.h"
#include "lifecycle/rollout/status.h"
#include "monitor/monitor.h"
#include "provision/storage/data_wipe.h"

#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod{500};

struct Looking {
  std::unique_ptr<lifecycle::LiveCluster> live;
  std::optional<lab::LabHandle> lab;
  std::unique_ptr<app::Controller> controller;
  const inventory::Cluster& cluster() const { return live->cluster(); }
};

Result<std::unique_ptr<Looking>> look(const app::Options& options) {
  TRY(live, liveCluster(options));
  auto looking = std::make_unique<Looking>(Looking{std::move(live), std::nullopt, nullptr});
  TRY(lab, lab::find(options.labFolder(looking->cluster())));
  looking->lab = std::move(lab);
  TRY(controller, app::Controller::look(options, looking->cluster(), looking->lab));
  looking->controller = std::move(controller);
  return looking;
}

struct StatusRow {
  std::string node, word, pool, image, certificate;
  std::size_t findings = 0;
};

Result<std::vector<StatusRow>> statusRows(Looking& looking) {
  auto& store = looking.controller->store();
  TRY(facts, store.facts());
  TRY(all_open, store.openIntents());
  TRY(all_findings, store.findings(nullptr));
  std::map<lifecycle::Subject, std::vector<lifecycle::Intent>> intents_of;
  std::map<lifecycle::Subject, std::vector<lifecycle::Finding>> findings_of;
  for (auto& intent : all_open)
    intents_of[intent.action.facet.subject].push_back(std::move(intent));
  for (auto& finding : all_findings)
    findings_of[finding.facet.subject].push_back(std::move(finding));
  std::vector<StatusRow> rows;
  for (const auto& node : looking.cluster().nodes) {
    const lifecycle::Subject subject(node.name);
    const auto& mine = intents_of[subject];
    const auto& findings = findings_of[subject];
    const auto value = [&](std::string_view facet) {
      return facts.value(subject, FacetName(std::string(facet))).value_or("-");
    };
    const auto certificate = value("certificate");
    rows.push_back({node.name.str(),
                    lifecycle::roadWord(subject, facts, looking.controller->goals(subject, facts),
                                        findings, mine),
                    value("pool"), std::string(cutToBytes(value("image"), 24)),
                    certificate.substr(0, certificate.find(':')), findings.size()});
  }
  return rows;
}

std::string statusText(const std::vector<StatusRow>& rows) {
  std::string out = fmt::format("{:<12}{:<16}{:<10}{:<26}{:<13}{}\n", "node", "state", "pool",
                                "image", "certificate", "findings");
  for (const auto& row : rows)
    out +=
        fmt::format("{:<12}{:<16}{:<10}{:<26}{:<13}{}\n", row.node, row.word, printable(row.pool),
                    printable(row.image), printable(row.certificate), row.findings);
  return out;
}

std::string statusJson(const std::vector<StatusRow>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& row : rows)
    out.push_back({{"node", row.node},
                   {"state", row.word},
                   {"pool", row.pool},
                   {"image", row.image},
                   {"certificate", row.certificate},
                   {"findings", row.findings}});
  return jsonText(out, 2) + "\n";
}

/// Where no keep runs: why, when a rollout is the reason. A standby of the site does not watch
/// either.
std::string standsAsideFor(lifecycle::Store& store) {
  const auto book = lifecycle::RolloutBook::current(store);
  if (!book || book->rollout().state != lifecycle::RolloutState::Running) return {};
  return fmt::format(
      "keep: stands aside while rollout {} runs; health and certificates of the other nodes are "
      "not watched so long\n",
      book->rollout().id);
}

/// Of several hosts; empty: there is one.
std::string whoServes(const inventory::Cluster& cluster, lifecycle::Store& store) {
  if (!app::hasSeveralControllers(cluster)) return {};
  const auto holder = lifecycle::siteHolder(store);
  if (!holder) return fmt::format("who serves the site is not known: {}\n", holder.error().str());
  return *holder ? fmt::format(
                       "{} serves the site, at {}; only it watches, hosts that stand by do not\n",
                       (*holder)->holder, (*holder)->address)
                 : "no host has served the site yet\n";
}

}  // namespace

int status(const app::Options& options, bool watch) {
  auto looking = look(options);
  if (!looking) return report(looking.error());
  std::string shown;
  bool stopped = false;  // keep's circuit breaker: the exit status says so too
  do {
    const auto rows = statusRows(**looking);
    if (!rows) return report(rows.error());
    auto kept =
        monitor::keepStatus((*looking)->controller->store(), (*looking)->controller->clock().now());
    if (!kept) return report(kept.error());
    stopped = kept->tripped;
    if (options.json && stopped) std::cerr << kept->text;
    if (!kept->running && !kept->text.empty())
      kept->text += standsAsideFor((*looking)->controller->store());
    kept->text += whoServes((*looking)->cluster(), (*looking)->controller->store());
    const auto text = options.json ? statusJson(*rows) : statusText(*rows) + kept->text;
    if (text != shown && watch && !options.json) writeRaw(std::cout, "\x1b[H\x1b[2J");
    if (text != shown) std::cout << text << std::flush;
    shown = text;
    if (watch) std::this_thread::sleep_for(kWatchPeriod);
  } while (watch);
  return stopped ? kFailed : kOk;
}

int why(const app::Options& options, const std::string& node) {
  auto looking = look(options);
  if (!looking) return report(looking.error());
  if (node != lifecycle::Subject::kCluster && !(*looking)->cluster().findNode(NodeName(node)))
    return report(Error(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node)));
  auto& controller = *(*looking)->controller;
  const auto subject = lifecycle::Subject::parse(node);
  const auto gathered = lifecycle::gatherExplanation(
      (*looking)->cluster(), controller.phases(), controller.store(), subject,
      controller.clock().now(), slownessOf(controller.clock()));
  if (!gathered) return report(gathered.error());
  auto explanation = lifecycle::explain(*gathered);
  if (!subject.isCluster()) {
    auto standing =
        lifecycle::standingOf(controller.store(), subject.node(), controller.clock().now());
    if (!standing) return report(standing.error());
    explanation.rollout = std::move(*standing);
  }
  std::cout << (options.json ? explanation.toJson() + "\n" : explanation.text());
  return kOk;
}

int events(const app::Options& options, const std::string& subject_name, std::size_t limit) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto subject = lifecycle::Subject::parse(subject_name);
  const auto found = (*store)->lastEvents(limit, subject_name.empty() ? nullptr : &subject);
  if (!found) return report(found.error());
  for (const auto& event : *found)
    std::cout << (options.json ? toJson(event) : eventLine(event)) << '\n';
  return kOk;
}

int allowWipe(const app::Options& options, const std::string& nodes, const std::string& reason,
              bool data) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto names = inventory::expandHostlist(nodes);
  if (!names) return report(names.error());
  for (const auto& name : *names)
    if (!cluster->findNode(NodeName(name)))
      return report(
          Error(ErrorCode::NotFound,
                fmt::format("node {} is not in the inventory; nothing was allowed", name)));
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  for (const auto& name : *names)  // before the other, without which it is worth nothing
    if (const auto allowed =
            data ? provision::allowDataWipe(**store, NodeName(name), reason) : Result<void>();
        !allowed)
      return report(allowed.error());
  for (const auto& name : *names)
    if (const auto allowed = (*store)->allowWipe(NodeName(name), reason, SystemClock().now());
        !allowed)
      return report(allowed.error());
  for (const auto& name : *names) {
    const auto text = fmt::format("{} allows it to be wiped once{}: {}", app::actorText(),
                                  data ? ", with the data of its storage sets" : "", reason);
    const lifecycle::Event event{0,
                                 SystemClock().now(),
                                 lifecycle::EventKind::Note,
                                 lifecycle::Subject(NodeName(name)),
                                 "",
                                 text};
    if (const auto noted = (*store)->addEvent(event); !noted) return report(noted.error());
  }
  std::cout << fmt::format("{} may be wiped once: {}\n", nodes, reason);
  const bool has_sets = std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return !cluster->profileOf(*cluster->findNode(NodeName(name))).storage.empty();
  });
  if (data)
    std::cout << "What the disks of their storage sets hold goes with it, as far as it is no "
                 "finished set as declared.\n";
  else if (has_sets)
    std::cout << "This is for system disks. Disks of storage sets that hold anything but a "
                 "finished set as declared stay as they are; for those too: --data\n";
  return kOk;
}

}  // namespace muster::cli
