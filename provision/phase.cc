// SPDX-License-Identifier: Apache-2.0
// The provision phase. Its acts are steps: each call looks where the node is and does the next
// thing, so a controller that was killed anywhere goes on by looking.
#include "lifecycle/model/unread.h"
#include "provision/agent_task.h"
#include "provision/built_images.h"
#include "provision/drivers/os_files.h"
#include "provision/facets.h"
#include "provision/identity.h"
#include "provision/imaging.h"
#include "provision/inspection.h"
#include "provision/node_reader.h"
#include "provision/provision.h"
#include "provision/restart.h"

#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "wire/task_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::provision {

using gateway::AgentState;
using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Disruption;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Finding;
using lifecycle::Outcome;
using lifecycle::Subject;
using std::chrono::seconds;
using wire::Mode;
using wire::TaskKind;

namespace {

constexpr seconds kInstallDriverLimit{1800}, kChangeNetworkLimit{300};

/// Of a task that leaves nothing to do when it has ended.
Outcome outcomeOf(const TaskStep& step) {
  if (const auto* again = std::get_if<Again>(&step)) return *again;
  if (const auto* refused = std::get_if<Refusal>(&step)) return Blocked{refused->why};
  return Done{};
}

class ProvisionPhase final : public lifecycle::Phase {
 public:
  explicit ProvisionPhase(ProvisionDeps deps)
      : deps_(std::move(deps)),
        restarts_(deps_.bmcs, deps_.agents, deps_.netboot, deps_.clock, deps_.boot_ended,
                  deps_.boots),
        images_(deps_.cluster, deps_.images),
        reader_(deps_, images_),
        imaging_(deps_, images_, reader_, restarts_),
        restart_notifier_(deps_.on_restart) {}

  std::string_view name() const override { return "provision"; }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override;
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override;

 private:
  std::optional<Again> untilInstalledReports(const inventory::Node& node) const;
  void addMedium(const inventory::Node& node, std::vector<Fact>& facts) const;

  Async<Outcome> enroll(const inventory::Node& node, ActContext& context);
  Async<Outcome> inspectNode(const inventory::Node& node, ActContext& context);
  Async<Outcome> network(const inventory::Node& node, ActContext& context);
  Async<Outcome> driver(const inventory::Node& node, const inventory::Driver& driver,
                        ActContext& context);

  const ProvisionDeps deps_;
  Restarts restarts_;
  const BuiltImages images_;
  const NodeReader reader_;
  Imaging imaging_;
  lifecycle::RestartNotifier restart_notifier_;
};

// ---- goals and facts

std::vector<lifecycle::Goal> ProvisionPhase::goals(const inventory::Cluster& cluster,
                                                   const Subject& subject,
                                                   const lifecycle::FactSet& facts) const {
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  if (!node) return {};
  const auto image = images_.find(cluster.profileOf(*node).image);
  auto goals = provisionGoals(cluster, subject, image ? std::optional(*image) : std::nullopt,
                              {image ? std::string() : image.error().str(),
                               images_.whyNoRamOs(cluster.profileOf(*node).arch)});
  if (const auto medium = facts.value(subject, facet(kBootMedium)); medium && *medium != kNone)
    goals.push_back({{subject, facet(kBootMedium)},
                     std::string(kNone),
                     Disruption::None,
                     {},
                     {},
                     {},
                     "muster has left its boot medium in the virtual CD: it was killed, or the BMC "
                     "did not let go of it"});
  return goals;
}

Async<std::vector<Fact>> ProvisionPhase::observe(Subject subject) {
  std::vector<Fact> facts;
  const auto* node = subject.isCluster() ? nullptr : deps_.cluster.findNode(subject.node());
  if (!node) co_return facts;
  auto system = co_await reader_.bmc(node->name);
  if (system) facts.push_back(reader_.enrolledFact(*node, *system));
  const auto state = deps_.agents.state(node->name);
  if (state) {
    reader_.addAgentFacts(*node, *state, facts);
    auto added = co_await reader_.addDriverFacts(node->name, false, &facts);
    if (!added) logWarning("provision", "{}: {}", node->name.str(), added.error().str());
  } else if (system && system->power != bmc::PowerState::Unknown) {
    const auto* word = system->power == bmc::PowerState::On ? "silent" : "off";
    facts.push_back(
        reader_.fact(node->name, kOs, word, "bmc " + deps_.bmcs.at(node->name).address()));
  }
  if (facts.empty())
    co_return std::unexpected(
        std::move(system).error().within("neither its BMC nor its agent answers"));
  addMedium(*node, facts);
  // A working node hides that its BMC refuses muster: what it said once is stale.
  facts.push_back(
      system ? lifecycle::readAgainFact(subject, kEnrolled, deps_.clock.now())
             : lifecycle::unreadFact(subject, kEnrolled, system.error(), deps_.clock.now()));
  co_return facts;
}

/// Of nodes that boot by one, and of those that did.
void ProvisionPhase::addMedium(const inventory::Node& node, std::vector<Fact>& facts) const {
  const auto left = restarts_.mediumLeft(node.name);
  if (!left) logWarning("provision", "{}: {}", node.name.str(), left.error().str());
  if (!left || (!*left && !deps_.netboot.usesMedium(node.name))) return;
  const auto evidence =
      *left ? jsonText(nlohmann::json{{"image", (*left)->urls.front()}, {"drive", (*left)->drive}})
            : std::string();
  facts.push_back(reader_.fact(node.name, kBootMedium, *left ? "inserted" : std::string(kNone),
                               "journal", evidence));
}

Async<std::vector<Fact>> ProvisionPhase::verify(Action action) {
  std::vector<Fact> facts;
  const auto* node = deps_.cluster.findNode(action.facet.subject.node());
  if (!node)
    co_return fail(ErrorCode::NotFound, action.facet.subject.str() + " is not in the inventory");
  const bool of_driver =
      action.facet.facet.str().starts_with(kDriverPrefix) || action.facet.facet == facet(kNetwork);
  if (action.facet.facet == facet(kBootMedium)) {
    addMedium(*node, facts);
    co_return facts;
  }
  if (action.facet.facet == facet(kEnrolled)) {
    CO_TRY(system, co_await reader_.bmc(node->name));
    facts.push_back(reader_.enrolledFact(*node, system));
    co_return facts;
  }
  auto state = deps_.agents.state(node->name);
  if (!state)
    co_return fail(ErrorCode::Unavailable, "the agent of " + node->name.str() + " does not call");
  if (of_driver && !state->fresh) {  // a driver shows hardware that could not be seen before
    CO_TRY(now, co_await reader_.lookAgain(node->name));
    state = std::move(now);
  }
  reader_.addAgentFacts(*node, *state, facts);
  auto added = co_await reader_.addDriverFacts(node->name, of_driver, &facts);
  if (!added && of_driver) co_return std::unexpected(std::move(added).error());
  co_return facts;
}

// ---- acts

Async<Outcome> ProvisionPhase::act(Action action, ActContext& context) {
  const auto* node = deps_.cluster.findNode(action.facet.subject.node());
  if (!node) co_return Outcome(Blocked{action.facet.subject.str() + " is not in the inventory"});
  const auto& name = action.facet.facet.str();
  if (name == kEnrolled) {
    co_return co_await enroll(*node, context);
  }
  if (name == kBootMedium) {
    CO_TRY(wait, co_await restarts_.removeMedium(node->name));
    if (wait) co_return Outcome(*wait);
    co_return Outcome(Done{});
  }
  if (name == kInspected) {
    co_return co_await inspectNode(*node, context);
  }
  if (name == kImage) {
    co_return co_await imaging_.install(*node, context);
  }
  if (name == kOs) {
    co_return co_await imaging_.run(*node, context);
  }
  if (name == kNetwork) {
    co_return co_await network(*node, context);
  }
  const auto declared = name.starts_with(kDriverPrefix)
                            ? deps_.cluster.drivers.find(name.substr(kDriverPrefix.size()))
                            : deps_.cluster.drivers.end();
  if (declared == deps_.cluster.drivers.end())
    co_return fail(ErrorCode::Internal, "provision has no facet " + name);
  co_return co_await driver(*node, declared->second, context);
}

Async<Outcome> ProvisionPhase::enroll(const inventory::Node& node, ActContext& context) {
  CO_TRY(system, co_await reader_.bmc(node.name));
  const auto seen = reader_.enrolledFact(node, system);
  if (seen.value == kYes) co_return Outcome(Done{});
  Finding finding;
  finding.facet = {Subject(node.name), facet(kEnrolled)};
  const bool unknown = seen.value.starts_with("unknown");
  finding.text = fmt::format("the BMC at {} {} the BMC of {}: {}", node.bmc.url,
                             unknown ? "is not known to be" : "is not", node.name.str(),
                             seen.value.substr(seen.value.find(": ") + 2));
  finding.evidence = seen.evidence;
  finding.what_to_do = identityAdvice(node, system, seen.value);
  finding.at = deps_.clock.now();
  context.finding(finding);
  co_return Outcome(Blocked{finding.text});
}

Async<Outcome> ProvisionPhase::inspectNode(const inventory::Node& node, ActContext& context) {
  const auto state = deps_.agents.state(node.name);
  if (!state) {  // any agent can tell what the machine is; only a silent machine is restarted
    CO_TRY(wait, co_await restarts_.intoRam(node.name, Restarts::Work::None));
    if (wait) co_return Outcome(*wait);
    co_return Outcome(Again{kLookAgain, "the hardware report of " + node.name.str()});
  }
  co_await restarts_.arrived(node.name);
  const auto& profile = deps_.cluster.profileOf(node);
  auto inspection = inspect(node, profile, state->hardware, reader_.contextOf(node));
  if (state->hardware.cpus == 0 || !inspection.mismatches.empty() ||
      needsNeighbour(node, profile, state->hardware)) {
    CO_TRY(now, co_await reader_.lookAgain(node.name));
    auto listened = reader_.contextOf(node);
    listened.listened = true;
    inspection = inspect(node, profile, now.hardware, listened);
  }
  for (const auto& mismatch : inspection.mismatches) {
    Finding finding;
    finding.facet = {Subject(node.name), facet(kInspected)};
    finding.text = mismatch.text;
    finding.evidence = mismatch.evidence;
    finding.what_to_do = mismatch.what_to_do;
    finding.at = deps_.clock.now();
    context.finding(std::move(finding));
  }
  if (inspection.mismatches.empty()) co_return Outcome(Done{});
  co_return Outcome(Blocked{fmt::format("{} is not what profile {} expects ({})", node.name.str(),
                                        profile.name, inspection.value({}))});
}

/// Nothing: the installed system's agent is there.
std::optional<Again> ProvisionPhase::untilInstalledReports(const inventory::Node& node) const {
  const auto state = deps_.agents.state(node.name);
  if (state && state->mode == Mode::Disk) return std::nullopt;
  return Again{kLookAgain,
               fmt::format("the agent of the installed system of {} to report", node.name.str())};
}

/// The node changes its network itself, and takes it back where it does not reach us by it.
Async<Outcome> ProvisionPhase::network(const inventory::Node& node, ActContext& context) {
  const auto wanted = inventory::nodeNetworkOf(deps_.cluster, node);
  if (!wanted) co_return fail(ErrorCode::Internal, node.name.str() + " has no network of its own");
  if (auto wait = untilInstalledReports(node)) co_return Outcome(*std::move(wait));
  const auto params = [&](bool) {
    wire::NodeServiceParams out;
    out.service = kNetwork;
    out.value = wire::digestOf(*wanted);
    out.files["network.json"] = wire::toJson(*wanted);
    return toJson(out);
  };
  CO_TRY(step, co_await stepTask(deps_.agents, node.name, TaskKind::NodeService,
                                 kChangeNetworkLimit, context, params));
  co_return outcomeOf(step);
}

Async<Outcome> ProvisionPhase::driver(const inventory::Node& node, const inventory::Driver& driver,
                                      ActContext& context) {
  if (auto wait = untilInstalledReports(node)) co_return Outcome(*std::move(wait));
  const auto params = [&](bool) {
    return toJson(driverParams(driver, deps_.controller_https_url, deps_.agent_ca_pem));
  };
  CO_TRY(step, co_await stepTask(deps_.agents, node.name, TaskKind::InstallDriver,
                                 kInstallDriverLimit, context, params));
  if (auto task = taskThatRestarts(deps_.agents, node.name, context)) {
    co_await restart_notifier_.announce(node.name, std::move(*task),
                                        "restart for driver " + driver.name);
  }
  co_return outcomeOf(step);
}

}  // namespace

std::unique_ptr<lifecycle::Phase> makeProvisionPhase(ProvisionDeps deps) {
  return std::make_unique<ProvisionPhase>(std::move(deps));
}

}  // namespace muster::provision
