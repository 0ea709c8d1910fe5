// SPDX-License-Identifier: Apache-2.0
// The provision phase. Its acts are steps: each call looks where the node is and does the next
// thing, so a controller that was killed anywhere goes on by looking.
#include "lifecycle/model/fact_source.h"
#include "lifecycle/model/unread.h"
#include "provision/agent_task.h"
#include "provision/drivers/os_files.h"
#include "provision/facets.h"
#include "provision/identity.h"
#include "provision/images/image_store.h"
#include "provision/inspection.h"
#include "provision/peers/peer_service.h"
#include "provision/provision.h"
#include "provision/restart.h"
#include "provision/storage/data_wipe.h"
#include "provision/storage/disk_params.h"

#include "base/async/deadline.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "wire/pack_index.h"
#include "wire/task_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::provision {

using gateway::AgentState;
using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Finding;
using lifecycle::Outcome;
using lifecycle::Subject;
using std::chrono::seconds;
using wire::Hardware;
using wire::Mode;
using wire::TaskKind;

namespace {

constexpr seconds kBmcLimit{40};
constexpr seconds kProbeLimit{30}, kInspectLimit{75}, kWriteImageLimit{3600},
    kInstallDriverLimit{1800}, kChangeNetworkLimit{300};

/// Why a live image cannot run on a machine, as far as its hardware is known. The agent looks
/// again, at what is really free.
std::optional<std::string> tooLarge(const PackedImage& image,
                                    const std::optional<AgentState>& state) {
  const auto memory = state ? state->hardware.memory_bytes : 0;
  if (memory == 0 || memory >= image.size_bytes + wire::kLiveRoomBytes) return std::nullopt;
  return fmt::format(
      "the live image {} takes {} MiB of memory and its system {} MiB beside it, the machine has "
      "{} MiB; make the image smaller, or one of another kind",
      image.name, image.size_bytes >> 20, wire::kLiveRoomBytes >> 20, memory >> 20);
}

class ProvisionPhase final : public lifecycle::Phase {
 public:
  explicit ProvisionPhase(ProvisionDeps deps)
      : deps_(std::move(deps)),
        restarts_(deps_.bmcs, deps_.agents, deps_.netboot, deps_.clock, deps_.boot_ended,
                  deps_.boots),
        restart_notifier_(deps_.on_restart) {}

  std::string_view name() const override { return "provision"; }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override;
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override;

 private:
  Fact fact(const NodeName& node, std::string_view name, std::string value, std::string source,
            std::string evidence = {}) const {
    return {Subject(node),     facet(name),       std::move(value),
            deps_.clock.now(), std::move(source), std::move(evidence)};
  }
  InspectionContext contextOf(const inventory::Node& node) const {
    if (!identity_index_ || !identity_index_->isOf(deps_.cluster.nodes))
      identity_index_.emplace(deps_.cluster.nodes);
    return {.nodes = &deps_.cluster.nodes,
            .identity_index = &*identity_index_,
            .listened = false,
            .diskless = deps_.cluster.isLive(deps_.cluster.profileOf(node))};
  }
  Result<PackedImage> packed(const std::string& image) const;
  std::string whyNoRamOs(Architecture architecture) const;
  std::optional<Again> untilInstalledReports(const inventory::Node& node) const;
  std::string installedImage(const std::string& digest) const;

  Async<bmc::SystemInfo> readBmc(NodeName node);
  Fact enrolledFact(const inventory::Node& node, const bmc::SystemInfo& system) const;
  void addAgentFacts(const inventory::Node& node, const AgentState& state,
                     std::vector<Fact>& facts) const;
  Async<void> addDriverFacts(NodeName node, bool fresh, std::vector<Fact>* facts);
  Async<AgentState> lookAgain(NodeName node);

  Async<Outcome> enroll(const inventory::Node& node, ActContext& context);
  Async<Outcome> inspectNode(const inventory::Node& node, ActContext& context);
  Async<std::optional<Blocked>> dataInTheWay(const inventory::Node& node, const AgentState& state,
                                             bool allowed);
  Async<Outcome> image(const inventory::Node& node, ActContext& context);
  Async<Outcome> startImage(const inventory::Node& node, const PackedImage& image,
                            ActContext& context);
  Async<Outcome> runSystem(const inventory::Node& node, ActContext& context);
  Async<Outcome> network(const inventory::Node& node, ActContext& context);
  Async<Outcome> driver(const inventory::Node& node, const inventory::Driver& driver,
                        ActContext& context);
  Async<Outcome> bootInstalled(const inventory::Node& node, const PackedImage& image);
  std::string imageParams(const inventory::Node& node, const PackedImage& image, bool wipe_allowed,
                          bool data_allowed) const;

  ProvisionDeps deps_;
  Restarts restarts_;
  lifecycle::RestartNotifier restart_notifier_;
  mutable std::map<std::string, PackedImage>
      packed_;                                 ///< found once; images do not change under their key
  mutable std::set<Architecture> has_ram_os_;  ///< found once
  mutable std::optional<IdentityIndex>
      identity_index_;  ///< of the cluster, made when first asked for
};

// ---- goals and facts

/// Errors: NotFound (not built), and the store's own; each says what to do
Result<PackedImage> ProvisionPhase::packed(const std::string& name) const {
  if (const auto known = packed_.find(name); known != packed_.end()) return known->second;
  const auto declared = deps_.cluster.images.find(name);
  if (declared == deps_.cluster.images.end())
    return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", name));
  auto found = deps_.images.find(declared->second);
  if (!found) {
    return fail(
        found.error().code(),
        fmt::format(
            "{}; `muster image build {}` checks its pack and signs it again, or builds it anew",
            found.error().str(), name));
  }
  if (!*found)
    return fail(ErrorCode::NotFound,
                fmt::format("image {} is not built; run `muster image build {}`", name, name));
  return packed_[name] = **found;
}

/// A node that waits in its drain for a RAM OS which nobody has built is out of work for nothing.
std::string ProvisionPhase::whyNoRamOs(Architecture architecture) const {
  if (has_ram_os_.contains(architecture)) return {};
  const auto found = deps_.images.findRamOs(architecture);
  if (!found) return found.error().str();
  if (!found->has_value()) return noRamOs(architecture);
  has_ram_os_.insert(architecture);
  return {};
}

std::string ProvisionPhase::installedImage(const std::string& digest) const {
  for (const auto& [name, declared] : deps_.cluster.images) {
    if (const auto known = packed(name); known && known->digest == digest)
      return imageValue(name, *known);
  }
  return "unknown@" + (digest.empty() ? "?" : digest);
}

std::vector<lifecycle::Goal> ProvisionPhase::goals(const inventory::Cluster& cluster,
                                                   const Subject& subject,
                                                   const lifecycle::FactSet&) const {
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  if (!node) return {};
  const auto image = packed(cluster.profileOf(*node).image);
  return provisionGoals(
      cluster, subject, image ? std::optional(*image) : std::nullopt,
      {image ? std::string() : image.error().str(), whyNoRamOs(cluster.profileOf(*node).arch)});
}

Async<bmc::SystemInfo> ProvisionPhase::readBmc(NodeName node) {
  auto read = deps_.bmcs.at(node).system();
  co_return co_await withDeadline<bmc::SystemInfo>(deps_.clock, kBmcLimit,
                                                   "the BMC of " + node.str(), std::move(read));
}

Fact ProvisionPhase::enrolledFact(const inventory::Node& node,
                                  const bmc::SystemInfo& system) const {
  const auto value = identityOf(node, system);
  return fact(node.name, kEnrolled, value, "bmc " + deps_.bmcs.at(node.name).address(),
              jsonText(identityEvidence(system)));
}

void ProvisionPhase::addAgentFacts(const inventory::Node& node, const AgentState& state,
                                   std::vector<Fact>& facts) const {
  const auto source = lifecycle::agentSource(Subject(node.name));
  const auto& profile = deps_.cluster.profileOf(node);
  const auto& hardware = state.hardware;
  const bool known = hardware.cpus > 0;
  if (known) {
    const auto inspection = inspect(node, profile, hardware, contextOf(node));
    const nlohmann::json evidence{{"notes", inspection.notes},
                                  {"mode", std::string(toString(state.mode))},
                                  {"product", hardware.product},
                                  {"cpus", hardware.cpus},
                                  {"memory_bytes", hardware.memory_bytes},
                                  {"gpus", hardware.gpus.size()}};
    facts.push_back(fact(node.name, kInspected, inspection.value(expectationDigest(node, profile)),
                         source, jsonText(evidence)));
    for (const auto& [name, value] : hardwareFacts(node, profile, hardware))
      facts.push_back(fact(node.name, name, value, source));
  }
  if (state.mode == Mode::Disk) {
    const auto image = installedImage(state.image_digest);
    facts.push_back(fact(node.name, kImage, image, source));
    // What runs in memory says nothing of the disks.
    const bool in_memory = deps_.cluster.isLive(profile) && known;
    facts.push_back(fact(node.name, lifecycle::kInstalledFacet,
                         in_memory ? diskContent(profile, hardware) : image, source));
    facts.push_back(fact(node.name, kOs, std::string(kRunning), source));
    return;
  }
  facts.push_back(fact(node.name, kOs, "ram", source));
  if (!known) return;
  const auto held = diskContent(profile, hardware);
  facts.push_back(fact(node.name, lifecycle::kInstalledFacet, held, source));
  if (held == kNone || deps_.cluster.isLive(profile))
    facts.push_back(fact(node.name, kImage, std::string(kNone), source));
}

/// What runs now, asked of the agent by a task of its own when its last poll does not tell, or when
/// it must be fresh.
Async<void> ProvisionPhase::addDriverFacts(NodeName node, bool fresh, std::vector<Fact>* facts) {
  const auto state = deps_.agents.state(node);
  const auto* declared = deps_.cluster.findNode(node);
  if (!state || state->mode != Mode::Disk || !declared) co_return Result<void>();
  const auto& drivers = deps_.cluster.profileOf(*declared).drivers;
  auto values = state->probes;
  std::vector<std::string> wanted;
  bool missing = fresh && !state->fresh;
  for (const auto& name : drivers)
    for (const auto& [probe, glob] : probesOf(deps_.cluster.drivers.at(name))) {
      wanted.push_back(probe);
      missing = missing || !values.contains(probe);
    }
  const bool has_network = deps_.cluster.profileOf(*declared).network.has_value();
  if (has_network) {
    wanted.emplace_back(kNetwork);
    missing = missing || !values.contains(std::string(kNetwork));
  }
  if (wanted.empty()) co_return Result<void>();
  if (missing) {
    const wire::AgentTask task{"probe." + node.str() + "." + io::randomToken(9), TaskKind::Probe,
                               toJson(wire::ProbeParams{wanted}), kProbeLimit};
    CO_TRY(report, co_await deps_.agents.runTask(node, task));
    CO_TRY(json, parseJson(report.result, kAgentJson));
    if (!json.is_object())
      co_return fail(ErrorCode::Corrupt, "the probes of " + node.str() + " are not a JSON object");
    values.clear();
    for (const auto& [probe, value] : json.items())
      values[probe] = value.is_string() ? value.get<std::string>() : jsonText(value);
  }
  for (const auto& name : drivers) {
    std::map<std::string, std::string> running;
    for (const auto& [probe, glob] : probesOf(deps_.cluster.drivers.at(name)))
      running[probe] = values[probe];
    facts->push_back(fact(node, driverFacet(name).str(), joinProbes(running),
                          lifecycle::agentSource(Subject(node))));
  }
  if (has_network) {
    const auto given = values.find(std::string(kNetwork));
    facts->push_back(fact(node, kNetwork,
                          given == values.end() ? std::string(kNone) : given->second,
                          lifecycle::agentSource(Subject(node))));
  }
  co_return Result<void>();
}

/// The node with its hardware as it is now: the agent tells it together with the end of the task.
Async<AgentState> ProvisionPhase::lookAgain(NodeName node) {
  const wire::AgentTask task{"inspect." + node.str() + "." + io::randomToken(9), TaskKind::Inspect,
                             inspectParams(deps_.cluster, node), kInspectLimit};
  CO_TRY_OK(co_await deps_.agents.runTask(node, task));
  const auto state = deps_.agents.state(node);
  if (!state)
    co_return fail(
        ErrorCode::Unavailable,
        "the agent of " + node.str() + " stopped answering during the query of its hardware");
  co_return *state;
}

Async<std::vector<Fact>> ProvisionPhase::observe(Subject subject) {
  std::vector<Fact> facts;
  const auto* node = subject.isCluster() ? nullptr : deps_.cluster.findNode(subject.node());
  if (!node) co_return facts;
  auto system = co_await readBmc(node->name);
  if (system) facts.push_back(enrolledFact(*node, *system));
  const auto state = deps_.agents.state(node->name);
  if (state) {
    addAgentFacts(*node, *state, facts);
    auto added = co_await addDriverFacts(node->name, false, &facts);
    if (!added) logWarning("provision", "{}: {}", node->name.str(), added.error().str());
  } else if (system && system->power != bmc::PowerState::Unknown) {
    const auto* word = system->power == bmc::PowerState::On ? "silent" : "off";
    facts.push_back(fact(node->name, kOs, word, "bmc " + deps_.bmcs.at(node->name).address()));
  }
  if (facts.empty())
    co_return std::unexpected(
        std::move(system).error().within("neither its BMC nor its agent answers"));
  // A working node hides that its BMC refuses muster: what it said once is stale.
  facts.push_back(
      system ? lifecycle::readAgainFact(subject, kEnrolled, deps_.clock.now())
             : lifecycle::unreadFact(subject, kEnrolled, system.error(), deps_.clock.now()));
  co_return facts;
}

Async<std::vector<Fact>> ProvisionPhase::verify(Action action) {
  std::vector<Fact> facts;
  const auto* node = deps_.cluster.findNode(action.facet.subject.node());
  if (!node)
    co_return fail(ErrorCode::NotFound, action.facet.subject.str() + " is not in the inventory");
  const bool of_driver =
      action.facet.facet.str().starts_with(kDriverPrefix) || action.facet.facet == facet(kNetwork);
  if (action.facet.facet == facet(kEnrolled)) {
    CO_TRY(system, co_await readBmc(node->name));
    facts.push_back(enrolledFact(*node, system));
    co_return facts;
  }
  auto state = deps_.agents.state(node->name);
  if (!state)
    co_return fail(ErrorCode::Unavailable, "the agent of " + node->name.str() + " does not call");
  if (of_driver && !state->fresh) {  // a driver shows hardware that could not be seen before
    CO_TRY(now, co_await lookAgain(node->name));
    state = std::move(now);
  }
  addAgentFacts(*node, *state, facts);
  auto added = co_await addDriverFacts(node->name, of_driver, &facts);
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
  if (name == kInspected) {
    co_return co_await inspectNode(*node, context);
  }
  if (name == kImage) {
    co_return co_await image(*node, context);
  }
  if (name == kOs) {
    co_return co_await runSystem(*node, context);
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
  CO_TRY(system, co_await readBmc(node.name));
  const auto seen = enrolledFact(node, system);
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
  deps_.netboot.disarm(node.name);
  restarts_.forget(node.name);
  const auto& profile = deps_.cluster.profileOf(node);
  auto inspection = inspect(node, profile, state->hardware, contextOf(node));
  if (state->hardware.cpus == 0 || !inspection.mismatches.empty() ||
      needsNeighbour(node, profile, state->hardware)) {
    CO_TRY(now, co_await lookAgain(node.name));
    auto listened = contextOf(node);
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

std::string ProvisionPhase::imageParams(const inventory::Node& node, const PackedImage& image,
                                        bool wipe_allowed, bool data_allowed) const {
  const auto& profile = deps_.cluster.profileOf(node);
  const auto base = fmt::format("{}/images/{}", deps_.controller_http_url, image.digest);
  wire::WriteImageParams params;
  params.index_url = base + "/index.json";
  params.pack_url = base + "/pack";
  params.digest = image.digest;
  params.signing_public_pem = deps_.signing_public_pem;
  params.disk = profile.disk;
  params.wipe_allowed = wipe_allowed;
  params.data_wipe_allowed = data_allowed;
  params.hostname = node.name.str();
  params.kernel_args = profile.kernel_args;
  params.authorized_keys = deps_.cluster.images.at(profile.image).authorized_keys;
  params.boot = profile.boot == inventory::BootMode::Uefi ? "uefi" : "bios";
  params.secure_boot = profile.secure_boot;
  params.agent = {deps_.agent_urls.empty() ? deps_.controller_https_url : deps_.agent_urls,
                  deps_.agent_ca_pem};
  auto plan = inventory::addressPlan(deps_.cluster.provisioning(), node.address);
  plan.image_mirrors.insert(
      plan.image_mirrors.end(), deps_.standby_urls.begin(),
      deps_.standby_urls.end());  // a writing goes on when the site changes hands
  addDiskParams(profile, node, plan.image_mirrors, params);
  if (deps_.peers) params.peers = deps_.peers->offer(node, image);
  // A fixed address: an installed node must come up while the controller is away.
  if (node.address.value() != 0) {
    params.address_cidr = fmt::format("{}/{}", node.address.str(), plan.prefix_bits);
    if (plan.gateway) params.gateway = plan.gateway->str();
    for (const auto& server : plan.dns) params.dns.push_back(server.str());
  }
  params.network = inventory::nodeNetworkOf(deps_.cluster, node);
  return toJson(params);
}

/// Before the node is restarted for nothing. The agent's own guard knows the tables of the disks,
/// and has the last word.
Async<std::optional<Blocked>> ProvisionPhase::dataInTheWay(const inventory::Node& node,
                                                           const AgentState& state, bool allowed) {
  const auto& profile = deps_.cluster.profileOf(node);
  if (allowed || !foreignData(profile, state.hardware)) co_return std::optional<Blocked>();
  auto looking = lookAgain(node.name);  // somebody may have emptied them
  CO_TRY(now, co_await std::move(looking));
  const auto held = foreignData(profile, now.hardware);
  if (!held) co_return std::optional<Blocked>();
  const Refusal refusal{fmt::format("{}: {}", node.name.str(), *held),
                        {wire::TaskReason::DataWipeDenied}};
  co_return Blocked{refusal.why + wipeAdviceFor(refusal, node.name)};
}

Async<Outcome> ProvisionPhase::image(const inventory::Node& node, ActContext& context) {
  const auto& wanted = deps_.cluster.profileOf(node).image;
  const auto image = packed(wanted);
  if (!image) co_return Outcome(Blocked{image.error().str()});
  if (image->live) {
    co_return co_await startImage(node, *image, context);
  }
  CO_TRY(note, TaskNote::parse(context.operation()));
  const auto state = deps_.agents.state(node.name);
  const bool written = note && note->done;
  if (written && note->data_allowed) CO_TRY_OK(deps_.end_data_wipe(node.name, context.intentId()));
  if (written || (state && state->mode == Mode::Disk && state->image_digest == image->digest)) {
    co_return co_await bootInstalled(node, *image);
  }
  bool data_allowed = note && note->data_allowed;
  if (state && !note) {
    const DataWipeOrder order{
        context.intentId(),
        orderWords(deps_.cluster.profileOf(node), node, image->digest, state->hardware),
        context.wipeAllowed(), deps_.clock.now()};
    CO_TRY(allowed, deps_.take_data_wipe(node.name, order));
    data_allowed = allowed;
    CO_TRY(refusal, co_await dataInTheWay(node, *state, allowed));
    if (refusal) co_return Outcome(*refusal);
  }
  if (deps_.peers) (void)deps_.peers->offer(node, *image);  // made ready while the machine boots
  CO_TRY(wait, co_await restarts_.intoRam(node.name,
                                          note ? Restarts::Work::Begun : Restarts::Work::None));
  if (wait) co_return Outcome(*wait);
  if (!state)
    co_return Outcome(
        Again{kLookAgain, "the hardware report of " + node.name.str()});  // it called just now

  const auto params = [&](bool wipe_allowed) {
    return imageParams(node, *image, wipe_allowed, data_allowed);
  };
  auto stepped = co_await stepTask(deps_.agents, node.name, TaskKind::WriteImage, kWriteImageLimit,
                                   context, params, data_allowed);
  if (auto failing =
          stepped ? std::nullopt : diskFinding(node.name, stepped.error(), deps_.clock.now()))
    context.finding(std::move(*failing));
  CO_TRY(step, std::move(stepped));
  if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
  if (const auto* refused = std::get_if<Refusal>(&step)) {
    if (auto kept = newMemberFinding(*refused, node.name, deps_.clock.now()))
      context.finding(std::move(*kept));
    co_return Outcome(Blocked{refused->why + wipeAdviceFor(*refused, node.name)});
  }
  for (auto& finding : sourceFindings(node.name, std::get<std::string>(step), deps_.clock.now(),
                                      deps_.standby_urls))
    context.finding(std::move(finding));
  if (deps_.peers) deps_.peers->dismiss(node.name);
  if (data_allowed) CO_TRY_OK(deps_.end_data_wipe(node.name, context.intentId()));
  context.progress(1, "written; starting from the disk");
  co_return co_await bootInstalled(node, *image);
}

/// The image is on the disk; it must now run, and be the one that was written.
Async<Outcome> ProvisionPhase::bootInstalled(const inventory::Node& node,
                                             const PackedImage& image) {
  auto disk = restarts_.intoDisk(node.name, Restarts::Work::Begun);
  CO_TRY(wait, co_await std::move(disk));
  if (wait) co_return Outcome(*wait);
  const auto state = deps_.agents.state(node.name);
  if (!state)
    co_return Outcome(
        Again{kLookAgain, "the installed system of " + node.name.str() + " to call again"});
  if (state->image_digest == image.digest) co_return Outcome(Done{});
  co_return fail(
      ErrorCode::Conflict,
      fmt::format("{} was imaged with {}, but booted {}; check the boot order of its firmware",
                  node.name.str(), imageValue(image.name, image),
                  installedImage(state->image_digest)));
}

/// A live image is brought into the memory of a machine that runs its kernel, and takes over there:
/// no disk is written. Whatever becomes of the machine, doing it again is harmless.
Async<Outcome> ProvisionPhase::startImage(const inventory::Node& node, const PackedImage& image,
                                          ActContext& context) {
  const auto state = deps_.agents.state(node.name);
  if (state && state->mode == Mode::Disk && state->image_digest == image.digest) {
    deps_.netboot.disarm(node.name);
    restarts_.forget(node.name);
    if (deps_.peers) deps_.peers->dismiss(node.name);
    co_return Outcome(Done{});
  }
  if (const auto why = tooLarge(image, state))
    co_return Outcome(Blocked{fmt::format("{}: {}", node.name.str(), *why)});
  CO_TRY(note, TaskNote::parse(context.operation()));
  if (deps_.peers) (void)deps_.peers->offer(node, image);  // made ready while the machine boots
  CO_TRY(wait, co_await restarts_.intoRam(
                   node.name, note ? Restarts::Work::Begun : Restarts::Work::None, image.digest));
  if (wait) co_return Outcome(*wait);
  const auto params = [&](bool) { return imageParams(node, image, false, false); };
  CO_TRY(step, co_await stepTask(deps_.agents, node.name, TaskKind::StartImage, kWriteImageLimit,
                                 context, params));
  if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
  if (const auto* refused = std::get_if<Refusal>(&step)) co_return Outcome(Blocked{refused->why});
  if (!note || !note->done)
    for (auto& finding : sourceFindings(node.name, std::get<std::string>(step), deps_.clock.now(),
                                        deps_.standby_urls))
      context.finding(std::move(finding));
  co_return Outcome(Again{
      kLookAgain, fmt::format("the agent of the live system of {} to report", node.name.str())});
}

Async<Outcome> ProvisionPhase::runSystem(const inventory::Node& node, ActContext& context) {
  if (const auto& profile = deps_.cluster.profileOf(node); deps_.cluster.isLive(profile)) {
    const auto image = packed(profile.image);
    if (!image) co_return Outcome(Blocked{image.error().str()});
    co_return co_await startImage(node, *image, context);
  }
  CO_TRY(wait, co_await restarts_.intoDisk(node.name, Restarts::Work::None));
  if (wait) co_return Outcome(*wait);
  co_return Outcome(Done{});
}

/// Nothing: the installed system's agent is there.
std::optional<Again> ProvisionPhase::untilInstalledReports(const inventory::Node& node) const {
  const auto state = deps_.agents.state(node.name);
  if (state && state->mode == Mode::Disk) return std::nullopt;
  return Again{kLookAgain,
               fmt::format("the agent of the installed system of {} to report", node.name.str())};
}

/// Of a task that leaves nothing to do when it has ended.
Outcome outcomeOf(const TaskStep& step) {
  if (const auto* again = std::get_if<Again>(&step)) return *again;
  if (const auto* refused = std::get_if<Refusal>(&step)) return Blocked{refused->why};
  return Done{};
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
