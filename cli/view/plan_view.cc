// SPDX-License-Identifier: Apache-2.0
#include "cli/view/plan_view.h"

#include "base/printable.h"
#include "cli/view/common_text.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace muster::cli {
namespace {

using lifecycle::Action;

constexpr std::size_t kMaxBlocks = 200;  ///< of a grouped plan; --expand and --json show the rest
constexpr std::size_t kMaxDomains = 16;  ///< racks and the like in the summary; pools are all shown

struct Texts {
  std::string from, to, reason, blocked;
};

std::string line(const Action& action, const Texts& texts) {
  const auto from = texts.from.empty() ? std::string("unknown") : printable(texts.from);
  std::string out =
      fmt::format("  {:<22} {} -> {}", action.facet.facet.str(), from, printable(texts.to));
  if (action.disruption != lifecycle::Disruption::None)
    out += fmt::format("  [{}]", toString(action.disruption));
  if (action.expected.count() > 0) out += fmt::format("  ~{}", durationText(action.expected));
  out += "\n      because " + printable(texts.reason) + "\n";
  if (!texts.blocked.empty()) out += "      BLOCKED: " + printable(texts.blocked) + "\n";
  return out;
}

Texts ownTexts(const Action& action) {
  return {briefDigests(action.from), briefDigests(action.to), action.reason, action.blocked};
}

Texts commonTexts(const Action& action) {
  const auto& name = action.facet.subject.str();
  Texts out;
  appendCommon(out.from, action.from, name);
  appendCommon(out.to, action.to, name);
  appendCommon(out.reason, action.reason, name);
  appendCommon(out.blocked, action.blocked, name);
  return out;
}

using SubjectIndex = std::uint32_t;

/// Equal actions of several subjects.
struct Group {
  const Action* first = nullptr;
  std::vector<SubjectIndex> subjects;
  bool is_same = true;  ///< also the parts that appendCommon leaves out of the values
};

class GroupedPlan {
 public:
  explicit GroupedPlan(const lifecycle::Plan& plan) {
    for (const auto& action : plan.actions) add(action);
  }
  std::size_t subjects() const { return names_.size(); }

  std::string text() const {
    std::map<std::vector<SubjectIndex>, std::size_t> block_of;
    std::vector<std::pair<const std::vector<SubjectIndex>*, std::string>> blocks;
    std::size_t hidden = 0;
    for (const auto& group : groups_) {
      const auto [found, is_new] = block_of.try_emplace(group.subjects, blocks.size());
      if (is_new && blocks.size() >= kMaxBlocks) {
        block_of.erase(found);
        ++hidden;
        continue;
      }
      if (is_new) blocks.emplace_back(&group.subjects, "");
      blocks[found->second].second += lineOf(group);
    }
    std::string out;
    for (const auto& [subjects, lines] : blocks) out += hostlist(*subjects) + "\n" + lines;
    if (hidden > 0)
      out += fmt::format(
          "… and {} more kinds of change; --expand lists every action, --nodes shows "
          "fewer nodes\n",
          hidden);
    return out;
  }

 private:
  void add(const Action& action) {
    const auto [subject, is_new] =
        index_of_.try_emplace(action.facet.subject.str(), static_cast<SubjectIndex>(names_.size()));
    if (is_new) names_.push_back(&action.facet.subject.str());
    key_.clear();
    const std::string_view name = action.facet.subject.str();
    for (const std::string_view text :
         {std::string_view(action.facet.facet.str()), std::string_view(action.from),
          std::string_view(action.to), std::string_view(action.reason),
          std::string_view(action.blocked)}) {
      appendCommon(key_, text, name);
      key_ += '\0';
    }
    key_ += static_cast<char>('0' + static_cast<int>(action.disruption));
    key_ += std::to_string(action.expected.count());
    const auto [group, is_first] = group_of_.try_emplace(key_, groups_.size());
    if (is_first) groups_.push_back({&action, {}, true});
    auto& of = groups_[group->second];
    of.subjects.push_back(subject->second);
    of.is_same = of.is_same && of.first->from == action.from && of.first->to == action.to;
  }

  std::string lineOf(const Group& group) const {
    if (group.subjects.size() == 1) return line(*group.first, ownTexts(*group.first));
    auto texts = commonTexts(*group.first);
    if (group.is_same) texts.from = briefDigests(group.first->from);
    if (group.is_same) texts.to = briefDigests(group.first->to);
    return line(*group.first, texts);
  }

  std::string hostlist(const std::vector<SubjectIndex>& subjects) const {
    std::vector<std::string> names;
    names.reserve(subjects.size());
    for (const auto subject : subjects) names.push_back(*names_[subject]);
    auto out = inventory::foldHostlist(std::move(names));
    if (subjects.size() > 1) out += fmt::format("  ({} nodes)", subjects.size());
    return out;
  }

  std::vector<Group> groups_;  ///< in the order of their first actions
  std::unordered_map<std::string, std::size_t> group_of_;
  std::unordered_map<std::string_view, SubjectIndex> index_of_;
  std::vector<const std::string*> names_;
  std::string key_;
};

std::string nodeByNode(const lifecycle::Plan& plan) {
  std::vector<const lifecycle::Subject*> order;
  std::map<lifecycle::Subject, std::string> blocks;
  for (const auto& action : plan.actions) {
    auto& block = blocks[action.facet.subject];
    if (block.empty()) order.push_back(&action.facet.subject);
    block += line(action, ownTexts(action));
  }
  std::string out;
  for (const auto* subject : order) out += subject->str() + "\n" + blocks[*subject];
  return out;
}

std::string namesText(const std::vector<NodeName>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const auto& node : nodes) names.push_back(node.str());
  return inventory::foldHostlist(std::move(names));
}

/// A plan that rests on what could not be looked at says so.
std::string unreadText(const app::PlanImpact& impact) {
  std::string out;
  for (const auto& [what, nodes] : impact.unread)
    out += fmt::format("  could not read {} of {}; `muster why NODE` says since when\n",
                       printable(what), namesText(nodes));
  return out;
}

}  // namespace

std::string durationText(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600)
    return seconds % 60 ? fmt::format("{} min {} s", seconds / 60, seconds % 60)
                        : fmt::format("{} min", seconds / 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string impactText(const app::PlanImpact& impact) {
  if (impact.actions == 0) return unreadText(impact);
  std::string out = fmt::format("{} actions on {} {}", impact.actions, impact.subjects,
                                impact.subjects == 1 ? "subject" : "subjects");
  if (impact.blocked) out += fmt::format(", {} of them blocked", impact.blocked);
  if (impact.at_least.count() > 0)
    out +=
        fmt::format("; at least {}, as long as they usually take", durationText(impact.at_least));
  out += "\n";
  const auto row = [&out](std::string_view what, const std::vector<NodeName>& nodes) {
    if (!nodes.empty())
      out += fmt::format("  {:<19}{:>6}  {}\n", what, nodes.size(), namesText(nodes));
  };
  row("taken out of work", impact.taken_out);
  std::size_t shown = 0;
  for (const auto& domain : impact.domains) {
    if (domain.domain.kind != lifecycle::DomainKind::Pool && !domain.exceeds() &&
        shown++ >= kMaxDomains)
      continue;
    out += fmt::format("    {}: {} of {}", printable(domain.domain.str()), domain.taken_out,
                       domain.size);
    if (domain.already_out) out += fmt::format(", {} more are drained", domain.already_out);
    if (domain.limit < domain.size) out += fmt::format(" (limit {})", domain.limit);
    out += domain.exceeds() ? "  TOO MANY\n" : "\n";
  }
  if (shown > kMaxDomains)
    out += fmt::format("    … and {} more racks, units or switches\n", shown - kMaxDomains);
  row("wiped", impact.wiped);
  row("reset", impact.reset);
  return out + unreadText(impact) + "\n";
}

std::string planText(const lifecycle::Plan& plan, PlanDetail detail) {
  if (plan.empty()) return "Nothing to do: everything is as declared.\n";
  const GroupedPlan grouped(plan);
  const auto blocked = std::ranges::count_if(
      plan.actions, [](const Action& action) { return !action.blocked.empty(); });
  auto out = detail == PlanDetail::Nodes ? nodeByNode(plan) : grouped.text();
  out += fmt::format("\n{} actions on {} subjects", plan.actions.size(), grouped.subjects());
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
  NodesByText problems;  // "gpu001/os: why"
  for (const auto& problem : report.problems) {
    const auto slash = std::min(problem.find('/'), problem.size());
    problems.add(problem.substr(0, slash), problem.substr(std::min(slash + 1, problem.size())));
  }
  std::size_t shown = 0;
  for (const auto& group : problems.groups()) {
    if (++shown > kMaxBlocks) break;
    out += fmt::format("  {}/{}\n", printable(group.hostlist()), printable(group.shown()));
  }
  if (shown > kMaxBlocks)
    out += fmt::format("  … and {} more; `muster findings` lists them\n",
                       problems.groups().size() - kMaxBlocks);
  return out;
}

}  // namespace muster::cli
