// SPDX-License-Identifier: Apache-2.0
// Volumes of RAID controllers: what is declared and missing is made, one order after the other,
// each written down before it is sent and believed when the controller shows the volume.
//
// A volume on free drives takes nothing from anybody: the node is drained, and restarted where the
// controller works only then. What other volumes or the machine's own disks hold goes by two
// permissions: the engine's for wiping, and `wipe --data`.
#include "provision/storage/raid_phase.h"

#include "base/async/deadline.h"
#include "base/async/poll.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "bmc/shut_down.h"
#include "inventory/model/cluster.h"
#include "inventory/model/hardware_raid.h"
#include "inventory/model/profile.h"
#include "provision/facets.h"
#include "provision/storage/raid_layout.h"
#include "provision/storage/raid_note.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

using namespace std::chrono_literals;
using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Disruption;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Stage;
using lifecycle::Subject;

namespace {

constexpr auto kObserveLimit = 2min;
constexpr auto kShowLimit = 30min;  ///< from the order, or the restart, until the volume is seen
constexpr std::chrono::milliseconds kFirstPoll = 1s, kPoll = 15s;

using Statuses = std::vector<VolumeStatus>;
/// What an order's look leads to; nothing: it has done what it was for.
using Wait = std::optional<Outcome>;

std::string evidenceOf(const Statuses& volumes) {
  auto out = nlohmann::json::object();
  for (const auto& each : volumes)
    out[each.declared.name] = {{"why", each.why},
                               {"controller", each.controller},
                               {"drives", each.drives},
                               {"wwn", each.wwn}};
  return jsonText(out);
}

const VolumeStatus* missingOf(const Statuses& volumes) {
  const auto found = std::ranges::find_if(
      volumes, [](const VolumeStatus& each) { return each.state != VolumeState::Present; });
  return found == volumes.end() ? nullptr : &*found;
}

/// "system (RAID1 of 2 drives)".
std::string words(const inventory::HardwareVolume& volume) {
  return fmt::format("{} ({} of {} drive{})", volume.name, raidWord(volume.level), volume.count,
                     volume.count == 1 ? "" : "s");
}

class RaidPhase final : public lifecycle::Phase {
 public:
  explicit RaidPhase(RaidDeps deps) : deps_(std::move(deps)) {}

  std::string_view name() const override { return "raid"; }

  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const lifecycle::FactSet& facts) const override {
    const auto* declared = declaredFor(cluster, subject);
    if (!declared) return {};
    const auto* seen = facts.find(subject, facet(kRaid));
    const auto now = seen ? seen->value : std::string();
    std::string all;
    for (const auto& volume : declared->volumes) all += (all.empty() ? "" : ", ") + words(volume);
    Goal goal;
    goal.facet = {subject, facet(kRaid)};
    goal.want = declaredRaid(*declared);
    goal.disruption =
        now.find("=taken") == std::string::npos ? Disruption::Reset : Disruption::Wipe;
    goal.why = fmt::format("profile {} declares RAID volumes: {}",
                           cluster.findNode(subject.node())->profile, all);
    if (seen && now.find("=taken") != std::string::npos)
      goal.why += "; what is in the way would be deleted: " + reasonsIn(seen->evidence);
    if (seen && now.find("=impossible") != std::string::npos)
      goal.blocked = reasonsIn(seen->evidence);
    goal.after = {Stage::Enrollment, Stage::Firmware, Stage::Bios};  // VROC is a BIOS setting
    return {std::move(goal)};
  }

  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    const auto* declared = declaredFor(deps_.cluster, subject);
    if (!declared) co_return facts;
    auto& bmc = deps_.bmcs.at(subject.node());
    auto reading = bmc.raidControllers();
    CO_TRY(controllers, co_await withDeadline<std::vector<bmc::RaidController>>(
                            deps_.clock, kObserveLimit, "the RAID volumes of " + subject.str(),
                            std::move(reading)));
    const auto volumes = compareVolumes(*declared, controllers, heldBy(subject.node()));
    facts.push_back({subject, facet(kRaid), observedRaid(volumes), deps_.clock.now(),
                     "bmc " + bmc.address(), evidenceOf(volumes)});
    co_return facts;
  }

  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

  Async<Outcome> act(Action action, ActContext& context) override {
    const auto& node = action.facet.subject.node();
    const auto* declared = declaredFor(deps_.cluster, action.facet.subject);
    if (!declared || declaredRaid(*declared) != action.to)
      co_return fail(ErrorCode::InvalidInput,
                     "the inventory declares other RAID volumes now; plan again");
    CO_TRY(note, RaidNote::parse(context.operation()));
    auto& bmc = deps_.bmcs.at(node);
    if (note && note->restart != RaidNote::Restart::None) {
      CO_TRY(wait, co_await restart(bmc, *note, context));
      if (wait) co_return std::move(*wait);
    }
    auto controllers = co_await bmc.raidControllers();
    if (!controllers)
      co_return co_await whileUnreadable(bmc, controllers.error(), note.has_value());
    const auto volumes = compareVolumes(*declared, *controllers, heldBy(node));
    const auto* missing = missingOf(volumes);
    if (!missing) {
      if (note && note->data_allowed) CO_TRY_OK(deps_.end_data_wipe(node, context.intentId()));
      co_return Outcome(Done{});
    }
    if (note) {
      CO_TRY(wait, co_await follow(action, *note, volumes, *controllers, context));
      if (wait) co_return std::move(*wait);
    }
    co_return co_await orderNext(action, *missing, note.value_or(RaidNote()), context);
  }

 private:
  static const inventory::HardwareRaid* declaredFor(const inventory::Cluster& cluster,
                                                    const Subject& subject) {
    const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
    if (!node || !cluster.profileOf(*node).raid) return nullptr;
    return &*cluster.profileOf(*node).raid;
  }

  static std::string reasonsIn(const std::string& evidence) {
    const auto json = jsonOrNone(evidence, kKeptJson);
    std::string out;
    if (json.is_object())
      for (const auto& [name, each] : json.items())
        if (const auto why = each.value("why", std::string()); !why.empty())
          out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", name, why);
    return out;
  }

  std::map<std::string, std::string> heldBy(const NodeName& node) const {
    const auto state = deps_.agents.state(node);
    return state ? heldBySerial(state->hardware) : std::map<std::string, std::string>();
  }

  /// Many show their controllers only while the machine runs.
  Async<Outcome> whileUnreadable(bmc::Bmc& bmc, Error why, bool begun) {
    CO_TRY(system, co_await bmc.system());
    if (system.power == bmc::PowerState::Off) {
      CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));
      co_return Outcome(Again{kPoll,
                              "its RAID controllers, which the BMC may show only while the "
                              "machine runs: " +
                                  why.text()});
    }
    if (begun && (why.canRetry() || why.code() == ErrorCode::NotFound))
      co_return Outcome(Again{kPoll, "the BMC to show its RAID controllers: " + why.text()});
    co_return fail(std::move(why));
  }

  /// The system is asked first; from On on it is only ever switched on.
  Async<Wait> restart(bmc::Bmc& bmc, RaidNote note, ActContext& context) {
    using Restart = RaidNote::Restart;
    if (note.restart != Restart::On) {
      if (!note.answered) co_return Wait();  // first it is known whether there is an order
      CO_TRY(system, co_await bmc.system());
      if (system.power != bmc::PowerState::Off) {
        note.restart = Restart::Off;
        CO_TRY_OK(co_await context.recordOperation(note.str()));
        CO_TRY_OK(co_await bmc::shutDown(bmc, deps_.clock));
      }
      note.restart = Restart::On;
      note.since = muster::toString(deps_.clock.now());
      CO_TRY_OK(co_await context.recordOperation(note.str()));
      CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));
      co_return Wait(Again{kFirstPoll, "the controller to work at the machine's start"});
    }
    CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));  // nothing, when it is on
    co_return Wait();
  }

  static bool isDone(const RaidNote& note, const Statuses& volumes,
                     const std::vector<bmc::RaidController>& controllers) {
    if (note.deletes.empty())
      return std::ranges::any_of(volumes, [&](const VolumeStatus& each) {
        return each.declared.name == note.volume && each.state == VolumeState::Present;
      });
    return std::ranges::none_of(controllers, [&](const bmc::RaidController& controller) {
      return std::ranges::find(controller.volumes, note.deletes, &bmc::RaidVolume::uri) !=
             controller.volumes.end();
    });
  }

  Async<Wait> follow(Action action, RaidNote note, Statuses volumes,
                     std::vector<bmc::RaidController> controllers, ActContext& context) {
    if (isDone(note, volumes, controllers)) co_return Wait();
    auto& bmc = deps_.bmcs.at(action.facet.subject.node());
    if (!note.answered) {
      CO_TRY(adopted, co_await adopt(bmc, note));
      if (!adopted) co_return Wait();  // it never arrived: ordered again, by what is there now
      note = std::move(*adopted);
      CO_TRY_OK(co_await context.recordOperation(note.str()));
      co_return Wait(Again{kFirstPoll, "the order that was given before muster stopped"});
    }
    std::string said;
    if (!note.task.empty()) {
      auto status = co_await bmc.task(note.task);
      if (!status && status.error().canRetry())
        co_return Wait(Again{kPoll, "its task: " + status.error().text()});
      if (!status && status.error().code() != ErrorCode::NotFound)  // else it was forgotten
        co_return fail(std::move(status.error()));
      if (status && status->state == bmc::TaskState::Failed)
        co_return failed(action, note, status->message, status->resolution, context);
      if (status && !status->moved_to.empty() && status->moved_to != note.task) {
        note.task = status->moved_to;
        CO_TRY_OK(co_await context.recordOperation(note.str()));
      }
      if (status) said = status->message;
      if (status) context.progress(status->fraction, said);
    }
    const auto since = parseWallTime(note.since);
    if (!since || deps_.clock.now() > *since + kShowLimit)
      co_return failed(action, note,
                       fmt::format("the controller does not show it within {} min{}",
                                   kShowLimit.count(), said.empty() ? "" : "; last: " + said),
                       {}, context);
    co_return Wait(Again{nextPollDelay(deps_.clock.now() - *since, kFirstPoll, kPoll),
                         fmt::format("the controller to {} {}{}",
                                     note.deletes.empty() ? "make" : "clear the drives of",
                                     note.volume, said.empty() ? "" : ": " + said)});
  }

  /// An order that may have been sent: its task is one that was not there before. Nothing: there is
  /// none.
  Async<std::optional<RaidNote>> adopt(bmc::Bmc& bmc, RaidNote note) {
    auto tasks = co_await bmc.tasks();
    if (!tasks && tasks.error().code() == ErrorCode::NotFound) co_return std::optional<RaidNote>();
    if (!tasks) co_return fail(std::move(tasks.error()));
    auto all = std::move(tasks->running);
    all.insert(all.end(), tasks->finished.begin(), tasks->finished.end());
    for (auto& uri : all) {
      if (std::ranges::find(note.before, uri) != note.before.end()) continue;
      note.task = std::move(uri);
      note.answered = true;
      co_return std::optional(std::move(note));
    }
    co_return std::optional<RaidNote>();
  }

  Result<Wait> failed(const Action& action, const RaidNote& note, const std::string& said,
                      const std::string& resolution, ActContext& context) const {
    const auto text = fmt::format("{} of RAID volume {} has failed: {}",
                                  note.deletes.empty() ? "the creation" : "clearing the drives",
                                  note.volume, said);
    context.finding({action.facet, Severity::Error, text, note.str(),
                     resolution.empty()
                         ? "look at the controller's task and its drives on the BMC, then `muster "
                           "apply` orders it anew"
                         : resolution,
                     deps_.clock.now()});
    return fail(ErrorCode::Conflict, text);
  }

  Async<Outcome> orderNext(Action action, VolumeStatus missing, RaidNote note,
                           ActContext& context) {
    const auto& node = action.facet.subject.node();
    if (missing.state == VolumeState::Impossible)
      co_return Outcome(Blocked{fmt::format("{}: {}", missing.declared.name, missing.why)});
    if (missing.state == VolumeState::Taken) {
      CO_TRY(refusal, mayDelete(node, action, missing, note, context));
      if (refusal) co_return Outcome(std::move(*refusal));
      note.data_allowed = true;
    }
    auto& bmc = deps_.bmcs.at(node);
    auto tasks = co_await bmc.tasks();
    if (!tasks && tasks.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(tasks.error()));
    note.before = tasks ? tasks->running : std::vector<std::string>();
    if (tasks)
      note.before.insert(note.before.end(), tasks->finished.begin(), tasks->finished.end());
    note.volume = missing.declared.name;
    note.deletes = missing.in_the_way.empty() ? "" : missing.in_the_way.front();
    note.answered = false;
    note.task.clear();
    note.restart = missing.at_restart ? RaidNote::Restart::Due : RaidNote::Restart::None;
    note.since = muster::toString(deps_.clock.now());
    CO_TRY_OK(co_await context.recordOperation(note.str()));
    bmc::VolumeOrder wanted{missing.volumes_uri, missing.declared.name,
                            raidWord(missing.declared.level), missing.drives};
    auto order = note.deletes.empty() ? co_await bmc.createVolume(std::move(wanted))
                                      : co_await bmc.deleteVolume(note.deletes);
    if (!order)
      co_return fail(std::move(order).error().within(fmt::format(
          "{} {}", note.deletes.empty() ? "making RAID volume" : "clearing the drives of",
          words(missing.declared))));
    note.answered = true;
    note.task = order->task;
    if (order->needs_restart) note.restart = RaidNote::Restart::Due;
    CO_TRY_OK(co_await context.recordOperation(note.str()));
    co_return Outcome(Again{kFirstPoll, fmt::format("the controller {} to make {}",
                                                    missing.controller, words(missing.declared))});
  }

  /// Nothing: both permissions are there.
  Result<std::optional<Blocked>> mayDelete(const NodeName& node, const Action& action,
                                           const VolumeStatus& missing, const RaidNote& note,
                                           ActContext& context) const {
    const auto refused = [&](const std::string& advice) {
      return std::optional(
          Blocked{fmt::format("{}: {} is not made, because its drives are taken: "
                              "{}; {}",
                              node.str(), words(missing.declared), missing.why, advice)});
    };
    if (action.disruption != Disruption::Wipe)
      return refused("this plan deletes nothing: `muster plan` again");
    const auto advice =
        fmt::format("if that may go: `muster wipe {} --data --reason …`", node.str());
    if (note.data_allowed) return std::optional<Blocked>();
    if (!context.wipeAllowed()) return refused(advice);
    const nlohmann::json order{{"raid", action.to}, {"drives", missing.drives}};
    TRY(allowed,
        deps_.take_data_wipe(node, {context.intentId(), jsonText(order), true, deps_.clock.now()}));
    return allowed ? std::optional<Blocked>() : refused(advice);
  }

  const RaidDeps deps_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeRaidPhase(RaidDeps deps) {
  return std::make_unique<RaidPhase>(std::move(deps));
}

}  // namespace muster::provision
