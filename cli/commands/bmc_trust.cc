// SPDX-License-Identifier: Apache-2.0
// bmc show, bmc rotate, bmc certificate: what BMCs and muster know each other by.
#include "app/state_folder.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "bmc/bulk_operation.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "lifecycle/store/store.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::chrono::hours kBmcCertificateLifetime{24 * 365 * 2};

std::string_view word(bmc::Rotation rotation) {
  return rotation == bmc::Rotation::Done ? "has the next password"
         : rotation == bmc::Rotation::Interrupted
             ? "was being changed: `muster bmc rotate` finds out and ends it"
             : "has the old password";
}

std::string_view word(bmc::BmcTrustBy trust) {
  switch (trust) {
    case bmc::BmcTrustBy::Pin:
      return "bmc_pin";
    case bmc::BmcTrustBy::Ca:
      return "bmc_ca";
    case bmc::BmcTrustBy::FirstContact:
      return "first-contact";
    case bmc::BmcTrustBy::Nothing:
      return "nothing";
  }
  return "nothing";
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

struct Change {
  app::Turn turn;
  std::unique_ptr<Session> session;
  std::vector<NodeName> nodes;
};

Result<Change> open(const app::Options& options, const BmcFlags& flags) {
  TRY(live, liveCluster(options));
  TRY(nodes, selectedNodes(live->cluster(), flags.node));
  TRY_OK(app::prepareStateFolder(options.state));
  TRY(turn, app::takeTurn(options.state));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  store.reset();
  TRY(session, Session::openStored(options, std::move(live)));
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  return Change{std::move(turn), std::move(session), std::move(nodes)};
}

/// Nobody's firmware update loses its login half-way.
Result<void> refuseBusyNodes(Change& change) {
  TRY(intents, change.session->controller->store().openIntents());
  for (const auto& intent : intents)
    for (const auto& node : change.nodes)
      if (intent.action.facet.subject == lifecycle::Subject(node))
        return fail(
            ErrorCode::Conflict,
            fmt::format("{} is under way; let it end: muster apply --nodes {}. Nothing was done",
                        intent.action.id, node.str()));
  return {};
}

int carryOut(Change& change, const std::string& what, std::function<Async<void>(NodeName)> work) {
  auto& controller = *change.session->controller;
  auto told = [&controller, &what](const NodeName& node, const Result<void>& ended) {
    std::cout << fmt::format("{}: {}\n", node.str(), ended ? "done" : ended.error().str())
              << std::flush;
    lifecycle::Event event;
    event.at = controller.clock().now();
    event.subject = lifecycle::Subject(node);
    event.text =
        fmt::format("{}: {}: {}", app::actorText(), what, ended ? "done" : ended.error().str());
    if (const auto kept = controller.store().addEvent(event); !kept)
      logWarning("bmc", "{}", kept.error().str());
  };
  const auto ended = controller.run(bmc::runBulkOperation(change.nodes, std::move(work), told));
  (void)controller.run(controller.bmcs().close());
  if (!ended) return report(ended.error());
  std::cout << fmt::format("{} of {} done", ended->done.size(), change.nodes.size());
  if (!ended->not_started.empty())
    std::cout << fmt::format(", {} not begun after {} failures; the same command goes on",
                             ended->not_started.size(), ended->failed.size());
  std::cout << "\n";
  return ended->failed.empty() ? kOk : kFailed;
}

}  // namespace

int bmcShow(const app::Options& options, const BmcFlags& flags) {
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  const auto& cluster = (*live)->cluster();
  const auto selected = selectedNodes(cluster, flags.node);
  if (!selected) return report(selected.error());
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  auto out = nlohmann::json::array();
  for (const auto& node : cluster.nodes) {
    if (!selected->empty() &&
        std::find(selected->begin(), selected->end(), node.name) == selected->end())
      continue;
    const auto memory = bmc::remembered(cluster, **store, node.name);
    if (!memory) return report(memory.error());
    const auto credential = cluster.credentials.find(inventory::bmcCredentialOf(cluster, node));
    const bool changes =
        credential != cluster.credentials.end() && credential->second.rotate_to.declared();
    out.push_back({{"node", node.name.str()},
                   {"bmc", node.bmc.url},
                   {"pin", memory->pin},
                   {"trust", word(memory->trust)},
                   {"inventory_is_behind", memory->inventory_is_behind},
                   {"password_refused", memory->password_refused}});
    if (changes)
      out.back()["rotation"] = memory->rotation == bmc::Rotation::Done          ? "done"
                               : memory->rotation == bmc::Rotation::Interrupted ? "interrupted"
                                                                                : "none";
    if (!options.json)
      std::cout << fmt::format("{:<12} {}  {}{}{}\n", node.name.str(), node.bmc.url,
                               certificateText(*memory),
                               memory->password_refused ? ", password refused" : "",
                               changes ? fmt::format(", {}", word(memory->rotation)) : "");
  }
  if (options.json) std::cout << jsonText(out, 2) << "\n";
  return kOk;
}

int bmcRotate(const app::Options& options, const BmcFlags& flags) {
  auto change = open(options, flags);
  if (!change) return report(change.error());
  const auto& cluster = change->session->cluster();
  auto& store = change->session->controller->store();
  std::size_t left = 0;
  for (const auto& node : change->nodes) {
    const auto credential =
        cluster.credentials.find(inventory::bmcCredentialOf(cluster, *cluster.findNode(node)));
    if (credential == cluster.credentials.end() || !credential->second.rotate_to.declared())
      return report(
          Error(ErrorCode::NotFound,
                fmt::format("no next password is declared for the BMC of {}; add rotate_to: "
                            "{{file: …}} to its credential. Nothing was done",
                            node.str())));
    const auto memory = bmc::remembered(cluster, store, node);
    if (!memory) return report(memory.error());
    left += memory->rotation != bmc::Rotation::Done;
    if (!flags.yes) std::cout << fmt::format("{}: {}\n", node.str(), word(memory->rotation));
  }
  if (!flags.yes) {
    std::cout << fmt::format(
        "{} of {} would be changed. Nothing was done; to do it: muster bmc rotate {} --yes\n", left,
        change->nodes.size(), flags.node);
    return kOk;
  }
  if (const auto busy = refuseBusyNodes(*change); !busy) return report(busy.error());
  auto& bmcs = change->session->controller->bmcs();
  const int code = carryOut(*change, "change of the BMC's password",
                            [&bmcs](NodeName node) { return bmcs.at(node).rotatePassword(); });
  if (code == kOk)
    std::cout << "Once `muster bmc show` says so of all BMCs of this credential: write the next "
                 "password into its password, and remove next\n";
  return code;
}

int bmcCertificate(const app::Options& options, const BmcFlags& flags) {
  auto change = open(options, flags);
  if (!change) return report(change.error());
  const auto& cluster = change->session->cluster();
  auto& controller = *change->session->controller;
  if (!flags.yes) {
    for (const auto& node : change->nodes) {
      const auto& signer = cluster.profileOf(*cluster.findNode(node)).bmc_certificate;
      std::cout << fmt::format(
          "{}: {} makes a key, {} signs, its certificate is trusted from then on\n", node.str(),
          cluster.findNode(node)->bmc.url,
          signer ? signer->sign.front() : std::string("this controller's CA"));
    }
    std::cout << fmt::format("Nothing was done; to do it: muster bmc certificate {} --yes\n",
                             flags.node);
    return kOk;
  }
  if (const auto busy = refuseBusyNodes(*change); !busy) return report(busy.error());
  auto work = [&cluster, &controller](NodeName name) {
    const auto& node = *cluster.findNode(name);
    const auto host = bmc::hostOf(node.bmc.url);
    const auto& signer = cluster.profileOf(node).bmc_certificate;
    const bmc::CertificateSubject subject{host, {host, name.str() + "-bmc"}};
    auto ours = [&controller, subject](std::string request) -> Async<std::string> {
      co_return controller.ca().signServer(request, subject.common_name, subject.names,
                                           kBmcCertificateLifetime);
    };
    return bmc::certify(
        controller.bmcs().at(name), subject,
        signer ? bmc::signBy(bmc::argumentsFor(node, signer->sign), controller.processes())
               : bmc::CertificateSigner(ours));
  };
  const int code = carryOut(*change, "certificate of the BMC", work);
  for (const auto& name : change->nodes) {
    const auto memory = bmc::remembered(cluster, controller.store(), name);
    if (memory && memory->inventory_is_behind)
      std::cout << fmt::format(
          "{}: the inventory names the certificate that was replaced; write bmc_pin: {}\n",
          name.str(), memory->pin);
  }
  return code;
}

}  // namespace muster::cli
