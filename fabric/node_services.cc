// SPDX-License-Identifier: Apache-2.0
#include "fabric/node_services.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "fabric/discovery/discovery.h"
#include "fabric/facets.h"
#include "fabric/roce/roce_paths.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/fact_source.h"
#include "wire/task_params.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::fabric {

namespace {

using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Disruption;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;
using std::chrono::seconds;

constexpr seconds kProbeLimit{60}, kServiceLimit{180}, kDomainDeadline{900};
constexpr std::chrono::milliseconds kLookAgain{5'000};
constexpr std::string_view kAsDeclared = "as-declared", kOneDomain = "one-domain",
                           kInvalid = "valid-declaration";
constexpr std::string_view kElsewhere =
    R"({"mended_by": "others"})";  // evidence of a fact that nothing on the node changes
constexpr std::size_t kDigestShown = 12, kNamed = 3;

FacetName facetName(std::string_view name) { return FacetName(std::string(name)); }
std::string shortened(const std::string& digest) { return digest.substr(0, kDigestShown); }

std::string firstOf(const std::vector<std::string>& texts) {
  const auto shown = std::min(texts.size(), kNamed);
  return fmt::format(
      "{}{}", fmt::join(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
      texts.size() > shown ? fmt::format("; and {} more", texts.size() - shown) : "");
}

class NodeServicesPhase final : public lifecycle::Phase {
 public:
  NodeServicesPhase(const inventory::Cluster& cluster, gateway::AgentGateway& agents, Clock& clock,
                    FabricOptionsOf options_of)
      : cluster_(cluster),
        agents_(agents),
        clock_(clock),
        options_of_(std::move(options_of)),
        declared_(allDeclared(cluster)) {}

  std::string_view name() const override { return "fabric-nodes"; }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const lifecycle::FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override;
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override {
    co_return co_await observe(action.facet.subject);
  }

 private:
  struct Declaration {
    const inventory::Fabric* fabric = nullptr;
    Topology topology;
    PartitionRules partitions;
  };
  static Result<Declaration> declaredOf(const inventory::Cluster& cluster,
                                        const inventory::Fabric& fabric) {
    TRY(topology, declaredTopology(cluster, fabric));
    TRY(partitions, declaredPartitions(cluster, fabric, topology));
    return Declaration{&fabric, std::move(topology), std::move(partitions)};
  }
  static std::map<std::string, Result<Declaration>> allDeclared(const inventory::Cluster& cluster) {
    std::map<std::string, Result<Declaration>> out;
    for (const auto* fabric : inventory::managedFabrics(cluster))
      out.emplace(fabric->name, declaredOf(cluster, *fabric));
    return out;
  }

  /// The fabric that the node stands by for; null: none.
  const Declaration* standsByFor(const inventory::Node& node) const {
    for (const auto& [name, declared] : declared_)
      if (declared && isStandbyOf(*declared->fabric, node)) return &*declared;
    return nullptr;
  }
  static bool isStandbyOf(const inventory::Fabric& fabric, const inventory::Node& node) {
    const auto& managers = fabric.subnet_managers;
    return std::find(managers.begin(), managers.end(), node.name.str()) != managers.end();
  }
  /// RoCE fabrics of the node, also those whose declaration has an error: gates wait for the facet.
  std::vector<std::string> roceFabrics(const inventory::Node& node) const {
    std::vector<std::string> out;
    for (auto& name : inventory::fabricsOf(cluster_.profileOf(node)))
      if (const auto fabric = cluster_.fabrics.find(name);
          fabric != cluster_.fabrics.end() && fabric->second.roce)
        out.push_back(std::move(name));
    return out;
  }
  /// The same expanded. Errors: InvalidInput (one of them cannot be)
  Result<std::vector<const Declaration*>> roceDeclared(const inventory::Node& node) const {
    std::vector<const Declaration*> out;
    for (const auto& name : roceFabrics(node)) {
      const auto declared = declared_.find(name);
      if (declared == declared_.end())
        return fail(ErrorCode::InvalidInput,
                    fmt::format("no node is on the fabric {}: nothing of it is checked", name));
      if (!declared->second) return fail(declared->second.error());
      out.push_back(&*declared->second);
    }
    return out;
  }
  std::vector<std::string_view> facetsOf(const inventory::Node& node) const;
  /// What the fact must be.
  std::string wanted(std::string_view facet, const inventory::Node& node) const;
  /// The files as they would be rendered now. Errors: Unavailable (what must be learned first)
  Result<ServiceFiles> files(std::string_view facet, const inventory::Node& node) const;
  Async<std::map<std::string, std::string>> ask(NodeName node, std::vector<std::string> probes);
  std::string seen(std::string_view facet, const inventory::Node& node,
                   const std::map<std::string, std::string>& probes) const;
  /// Errors: Corrupt
  Result<std::vector<RoceProblem>> roceFound(
      const inventory::Node& node, const std::map<std::string, std::string>& probes) const;
  /// What others have to mend, where the script is in force and nothing is left for it to set.
  /// Empty: not so.
  std::vector<std::string> onlyElsewhere(const inventory::Node& node,
                                         const std::map<std::string, std::string>& probes) const;
  /// Answers to all that these facets are evaluated by.
  Async<std::map<std::string, std::string>> askFor(std::vector<std::string_view> facets,
                                                   NodeName node);
  std::string domainSeen(const inventory::NvlinkDomain& domain, const NodeName& node,
                         const std::map<std::string, std::string>& probes) const;

  const inventory::Cluster& cluster_;
  gateway::AgentGateway& agents_;
  Clock& clock_;
  const FabricOptionsOf options_of_;
  const std::map<std::string, Result<Declaration>> declared_;
  RocePaths ways_;
};

std::string serviceOf(std::string_view facet) {
  return facet == kOpensm    ? "opensm"
         : facet == kRoce    ? "roce"
         : facet == kManager ? "fabric-manager"
                             : "imex";
}

std::vector<std::string_view> NodeServicesPhase::facetsOf(const inventory::Node& node) const {
  std::vector<std::string_view> out;
  if (standsByFor(node)) out.push_back(kOpensm);
  if (!roceFabrics(node).empty()) out.push_back(kRoce);
  if (managerFiles(cluster_, cluster_.profileOf(node))) out.push_back(kManager);
  if (domainOf(cluster_, node.name)) out.insert(out.end(), {kImex, kNvlink});
  return out;
}

std::string NodeServicesPhase::wanted(std::string_view facet, const inventory::Node& node) const {
  if (facet == kRoce) return std::string(roceDeclared(node) ? kAsDeclared : kInvalid);
  if (facet == kNvlink)
    return fmt::format("{}:{}", kOneDomain, domainOf(cluster_, node.name)->name);
  if (facet == kManager)
    return "keys:" + shortened(managerFiles(cluster_, cluster_.profileOf(node))->digest());
  if (facet == kImex) {
    const auto rendered = files(facet, node);
    return rendered ? fmt::format("{}:{}", domainOf(cluster_, node.name)->name,
                                  shortened(rendered->digest()))
                    : std::string(kInvalid);
  }
  // Before anything is discovered no GUID is known: what is declared names it.
  const auto& declared = *standsByFor(node);
  return "standby:" +
         shortened(io::sha256Hex(declaredSmDigest(*declared.fabric, declared.topology) +
                                 tablesDigest(declared.partitions, declared.topology)));
}

Result<ServiceFiles> NodeServicesPhase::files(std::string_view facet,
                                              const inventory::Node& node) const {
  if (facet == kImex) return imexFiles(cluster_, *domainOf(cluster_, node.name));
  if (facet == kManager) return *managerFiles(cluster_, cluster_.profileOf(node));
  if (facet == kRoce) {
    TRY(declared, roceDeclared(node));
    std::vector<const inventory::Fabric*> fabrics;
    for (const auto* each : declared) fabrics.push_back(each->fabric);
    return roceFiles(cluster_.profileOf(node), fabrics);
  }
  const auto& declared = *standsByFor(node);
  const auto options = options_of_(declared.fabric->name);
  const auto known =
      KnownGuids::fromJson(io::readFile(options.run_folder / "guids.json").value_or(""));
  return opensmFiles(cluster_, *declared.fabric, declared.topology, known, node.name.str(),
                     io::readFile(options.opensmFolder() / "guid2lid").value_or(""));
}

std::vector<Goal> NodeServicesPhase::goals(const inventory::Cluster& cluster,
                                           const Subject& subject,
                                           const lifecycle::FactSet& facts) const {
  std::vector<Goal> out;
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  if (!node) return out;
  const auto& profile = cluster.profileOf(*node);
  for (auto facet : facetsOf(*node)) {
    Goal goal;
    goal.facet = {subject, facetName(facet)};
    goal.want = wanted(facet, *node);
    goal.after = {profile.drivers.empty() ? lifecycle::Stage::Boot : lifecycle::Stage::Drivers};
    if (facet == kNvlink) goal.deadline = kDomainDeadline;
    goal.disruption = facet == kOpensm || facet == kNvlink ? Disruption::None : Disruption::Drain;
    if (facet == kOpensm) {
      const auto& fabric = *standsByFor(*node)->fabric;
      goal.needs.push_back({Subject::cluster(),
                            FacetName(std::string(kPartitions) + facetSuffix(cluster_, fabric))});
      goal.why =
          fmt::format("fabric {} declares a subnet manager on {}", fabric.name, subject.str());
    } else if (facet == kRoce) {
      if (const auto* fact = facts.find(subject, goal.facet.facet);
          fact && fact->evidence == kElsewhere)
        goal.disruption = Disruption::None;
      goal.why =
          fmt::format("fabric {} declares RoCE QoS settings", fmt::join(roceFabrics(*node), ", "));
    } else if (facet == kManager) {
      goal.why =
          fmt::format("a driver of profile {} declares keys of fabricmanager.cfg", profile.name);
    } else {
      goal.why = fmt::format("{} is in the NVLink domain {}", subject.str(),
                             domainOf(cluster, node->name)->name);
      if (facet == kNvlink) goal.needs.push_back({subject, facetName(kImex)});
    }
    if (goal.want == kInvalid) goal.blocked = files(facet, *node).error().str();
    out.push_back(std::move(goal));
  }
  return out;
}

Async<std::map<std::string, std::string>> NodeServicesPhase::ask(NodeName node,
                                                                 std::vector<std::string> probes) {
  wire::AgentTask task{"fabric." + node.str() + "." + io::randomToken(9), wire::TaskKind::Probe,
                       toJson(wire::ProbeParams{std::move(probes)}), kProbeLimit};
  CO_TRY(report, co_await agents_.runTask(node, std::move(task)));
  const auto json = jsonOrNone(report.result, kAgentJson);
  if (!json.is_object())
    co_return fail(ErrorCode::Corrupt,
                   fmt::format("the probes of {} are not a JSON object", node.str()));
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : json.items())
    if (value.is_string()) out[key] = value.get<std::string>();
  co_return out;
}

/// One answer for the domain: IMEX is up with all of its nodes, and the GPUs of all that have told
/// are in one fabric partition.
std::string NodeServicesPhase::domainSeen(const inventory::NvlinkDomain& domain,
                                          const NodeName& node,
                                          const std::map<std::string, std::string>& probes) const {
  const auto at = [](const std::map<std::string, std::string>& from, const char* key) {
    const auto found = from.find(key);
    return found == from.end() ? std::string() : found->second;
  };
  const auto imex = at(probes, "imex.state"), own = at(probes, "nvlink.domain");
  if (imex != fmt::format("UP nodes={}", domain.nodes.size()))
    return "imex: " + (imex.empty() ? "did not answer" : imex);
  if (own.empty() || own.starts_with("none"))
    return "gpus: " + (own.empty() ? "did not answer" : own);
  for (const auto& name : domain.nodes) {
    if (name == node.str()) continue;
    const auto state = agents_.state(NodeName(name));
    const auto other = state ? at(state->probes, "nvlink.domain") : std::string();
    if (!other.empty() && other != own)
      return fmt::format("gpus: {} is in {}, this node in {}", name, other, own);
  }
  return fmt::format("{}:{}", kOneDomain, domain.name);
}

std::string NodeServicesPhase::seen(std::string_view facet, const inventory::Node& node,
                                    const std::map<std::string, std::string>& probes) const {
  if (facet == kNvlink) return domainSeen(*domainOf(cluster_, node.name), node.name, probes);
  const auto rendered = files(facet, node);
  if (!rendered) return "not known: " + rendered.error().str();
  const auto running = probes.find("node-service." + rendered->service);
  if (running == probes.end()) return "absent";
  if (running->second != rendered->digest())
    return running->second.find(' ') == std::string::npos ? "outdated" : running->second;
  if (facet != kRoce) return wanted(facet, node);
  const auto found = roceFound(node, probes);
  if (!found) return "not known: " + found.error().str();
  std::vector<std::string> texts;
  for (const auto& one : *found) texts.push_back(one.text);
  return texts.empty() ? std::string(kAsDeclared) : firstOf(texts);
}

Result<std::vector<RoceProblem>> NodeServicesPhase::roceFound(
    const inventory::Node& node, const std::map<std::string, std::string>& probes) const {
  const auto marking = probes.find("roce.marking");
  TRY(declared, roceDeclared(node));
  std::vector<RoceProblem> found;
  for (const auto* each : declared) {
    TRY(own, roceFindings(cluster_, *each->fabric, each->topology, node,
                          marking == probes.end() ? "" : marking->second));
    found.insert(found.end(), std::make_move_iterator(own.begin()),
                 std::make_move_iterator(own.end()));
  }
  for (const auto& way : ways_.problems(probes)) found.push_back({way});
  return found;
}

std::vector<std::string> NodeServicesPhase::onlyElsewhere(
    const inventory::Node& node, const std::map<std::string, std::string>& probes) const {
  const auto rendered = files(kRoce, node);
  const auto running = probes.find("node-service.roce");
  if (!rendered || running == probes.end() || running->second != rendered->digest()) return {};
  const auto found = roceFound(node, probes);
  std::vector<std::string> texts;
  for (const auto& one : found.value_or(std::vector<RoceProblem>{})) {
    if (one.is_marking) return {};
    texts.push_back(one.text);
  }
  return texts;
}

Async<std::map<std::string, std::string>> NodeServicesPhase::askFor(
    std::vector<std::string_view> facets, NodeName node) {
  std::vector<std::string> probes;
  for (auto facet : facets) {
    if (facet != kNvlink) probes.push_back("node-service." + serviceOf(facet));
    if (facet == kRoce) probes.push_back("roce.marking");
    if (facet == kNvlink) probes.insert(probes.end(), {"imex.state", "nvlink.domain"});
  }
  CO_TRY(answers, co_await ask(node, std::move(probes)));
  const auto* asked = cluster_.findNode(node);
  if (const auto marking = answers.find("roce.marking"); asked && marking != answers.end()) {
    ways_.learn(node, marking->second);
    std::vector<std::string> ways;
    if (const auto declared = roceDeclared(*asked))
      for (const auto* each : *declared)
        for (auto& way : ways_.probesOf(cluster_, *each->fabric, node))
          ways.push_back(std::move(way));
    if (!ways.empty()) {
      CO_TRY(passed, co_await ask(node, std::move(ways)));
      answers.merge(passed);
    }
  }
  co_return std::move(answers);
}

Async<std::vector<Fact>> NodeServicesPhase::observe(Subject subject) {
  std::vector<Fact> facts;
  const auto* node = subject.isCluster() ? nullptr : cluster_.findNode(subject.node());
  const auto facets = node ? facetsOf(*node) : std::vector<std::string_view>();
  const auto state = facets.empty() ? std::nullopt : agents_.state(node->name);
  if (!state || state->mode != wire::Mode::Disk) co_return facts;
  CO_TRY(answers, co_await askFor(facets, node->name));
  for (auto facet : facets) {
    const bool elsewhere = facet == kRoce && !onlyElsewhere(*node, answers).empty();
    facts.push_back({subject, facetName(facet), seen(facet, *node, answers), clock_.now(),
                     lifecycle::agentSource(lifecycle::Subject(node->name)),
                     elsewhere ? std::string(kElsewhere) : std::string()});
  }
  co_return facts;
}

/// A controller that died meanwhile finds the task that it had begun; one that failed is begun
/// anew, and starts nothing that runs right.
Async<Outcome> NodeServicesPhase::act(Action action, ActContext& context) {
  const auto facet = action.facet.facet.str();
  const auto* node = cluster_.findNode(action.facet.subject.node());
  if (!node) co_return Blocked{fmt::format("the inventory has no {}", action.facet.subject.str())};
  if (const auto asked = facetsOf(*node);
      std::find(asked.begin(), asked.end(), facet) == asked.end())
    co_return Blocked{
        fmt::format("the inventory no longer requires {} of {}", facet, node->name.str())};
  const auto state = agents_.state(node->name);
  if (!state || state->mode != wire::Mode::Disk)
    co_return Again{kLookAgain, fmt::format("the agent of the installed system of {} to report",
                                            node->name.str())};
  if (facet == kNvlink) {  // all nodes of the domain have to come: nothing is done but waited
    std::vector<std::string> probes = {"imex.state", "nvlink.domain"};
    CO_TRY(answers, co_await ask(node->name, std::move(probes)));
    const auto now = seen(facet, *node, answers);
    if (now == wanted(facet, *node)) co_return Done{};
    co_return Again{kLookAgain, fmt::format("the whole NVLink domain ({}); remove a node that is "
                                            "out of service from nvlink_domains",
                                            now)};
  }
  auto rendered = files(facet, *node);
  if (!rendered) co_return Blocked{rendered.error().str()};
  if (facet == kRoce) {  // a cable at the wrong port is not mended by marking again
    std::vector<std::string_view> only = {kRoce};
    CO_TRY(answers, co_await askFor(std::move(only), node->name));
    if (const auto others = onlyElsewhere(*node, answers); !others.empty()) {
      context.finding({action.facet,
                       Severity::Error,
                       firstOf(others),
                       {},
                       "the QoS settings of the node are as declared: repair the cable, the switch "
                       "or the address",
                       clock_.now()});
      co_return Blocked{firstOf(others)};
    }
  }
  const wire::NodeServiceParams params{rendered->service, rendered->digest(), rendered->files,
                                       rendered->settings};
  context.progress(0.2,
                   fmt::format("{} starts {} with its files", node->name.str(), rendered->service));
  auto id = context.operation();
  const auto known = id.empty() ? std::nullopt : agents_.report(node->name, id);
  if (id.empty() || (known && known->phase == wire::TaskPhase::Failed)) {
    id = context.intentId() + "/" + io::randomToken(6);
    CO_TRY_OK(co_await context.recordOperation(id));
  }
  wire::AgentTask task{id, wire::TaskKind::NodeService, toJson(params), kServiceLimit};
  const auto done = co_await agents_.runTask(node->name, std::move(task));
  if (done) co_return Done{};
  if (done.error().canRetry()) co_return fail(done.error());
  context.finding({action.facet,
                   Severity::Error,
                   done.error().str(),
                   {},
                   "repair what the node reports, then run muster apply again",
                   clock_.now()});
  co_return Blocked{done.error().str()};
}

}  // namespace

std::unique_ptr<lifecycle::Phase> makeNodeServicesPhase(const inventory::Cluster& cluster,
                                                        gateway::AgentGateway& agents, Clock& clock,
                                                        FabricOptionsOf options_of) {
  return std::make_unique<NodeServicesPhase>(cluster, agents, clock, std::move(options_of));
}

}  // namespace muster::fabric
