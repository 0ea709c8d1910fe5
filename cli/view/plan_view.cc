// SPDX-License-Identifier: Apache-2.0
#include "cli/view/plan_view.h"

#include "base/printable.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"

namespace muster::cli {
namespace {

std::string line(const lifecycle::Action& action) {
  const auto from =
      action.from.empty() ? std::string("unknown") : printable(briefDigests(action.from));
  std::string out = fmt::format("  {:<22} {} -> {}", action.facet.facet.str(), from,
                                printable(briefDigests(action.to)));
  if (action.disruption != lifecycle::Disruption::None)
    out += fmt::format("  [{}]", toString(action.disruption));
  if (action.expected.count() > 0) out += fmt::format("  ~{}", durationText(action.expected));
  out += "\n      because " + printable(action.reason) + "\n";
  if (!action.blocked.empty()) out += "      BLOCKED: " + printable(action.blocked) + "\n";
  return out;
}

}  // namespace

// Digests are long and say nothing to people: the first eight digits tell two of them apart.
std::string briefDigests(const std::string& value) {
  std::string out;
  std::size_t hex_run = 0;
  for (const char c : value) {
    hex_run = std::isxdigit(static_cast<unsigned char>(c)) ? hex_run + 1 : 0;
    if (hex_run <= 8)
      out += c;
    else if (hex_run == 9)
      out += "…";
  }
  return out;
}

std::string durationText(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600)
    return seconds % 60 ? fmt::format("{} min {} s", seconds / 60, seconds % 60)
                        : fmt::format("{} min", seconds / 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string planText(const lifecycle::Plan& plan) {
  if (plan.empty()) return "Nothing to do: everything is as declared.\n";
  std::vector<lifecycle::Subject> order;
  std::map<lifecycle::Subject, std::string> blocks;
  std::size_t blocked = 0;
  for (const auto& action : plan.actions) {
    auto& block = blocks[action.facet.subject];
    if (block.empty()) order.push_back(action.facet.subject);
    block += line(action);
    blocked += !action.blocked.empty();
  }
  std::string out;
  for (const auto& subject : order) out += subject.str() + "\n" + blocks[subject];
  out += fmt::format("\n{} actions on {} subjects", plan.actions.size(), order.size());
  if (blocked) out += fmt::format(", {} blocked", blocked);
  return out + fmt::format("; plan {}\n", plan.hash().substr(0, 12));
}

std::string bmcTrustText(const inventory::Cluster& cluster) {
  std::size_t asked = 0, declared = 0;
  for (const auto& node : cluster.nodes) {
    if (!node.bmc.url.starts_with("https://")) continue;
    ++asked;
    declared += inventory::bmcTrustOf(cluster, node).declaresCertificate();
  }
  if (asked == 0) return {};
  const auto open = asked - declared;
  const auto out =
      fmt::format("bmc_trust is {}: the inventory declares the certificates of {} of {} BMCs",
                  inventory::word(cluster.bmc_trust), declared, asked);
  if (open == 0) return out + "\n";
  if (cluster.bmc_trust == inventory::BmcTrustPolicy::Declared)
    return out + "; the others get no password\n";
  return out + "; the others get the password whoever answers first, and are pinned then\n";
}

std::string slownessText(double slowness) {
  if (slowness <= 1) return {};
  return fmt::format(
      "this machine is up to {0:g} times slower than an idle one: in the lab deadlines are {0:g} "
      "times as long\n",
      slowness);
}

std::string reportText(const lifecycle::ApplyReport& report) {
  std::string out = fmt::format("{} done, {} failed, {} blocked, {} not started\n", report.done,
                                report.failed, report.blocked, report.skipped);
  if (report.held > 0)
    out += fmt::format("  {} left to other controllers, which work on these nodes\n", report.held);
  for (const auto& problem : report.problems) out += "  " + printable(problem) + "\n";
  return out;
}

}  // namespace muster::cli
