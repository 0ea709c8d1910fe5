// SPDX-License-Identifier: Apache-2.0
#include "provision/restart.h"

#include "base/async/poll.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/refused_agents.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

using lifecycle::Again;
using wire::Mode;

namespace {

std::string_view systemOf(Mode mode) { return mode == Mode::Ram ? "RAM OS" : "installed system"; }

std::string adviceFor(Mode mode, const NodeName& node, bool by_medium) {
  return fmt::format(
      "look at its console (`muster console {} --last`): {}, and does {} reach the controller?",
      node.str(),
      mode == Mode::Ram
          ? (by_medium ? "does it boot from its virtual CD, and does its BMC reach the "
                         "controller"
                       : "does it boot from the NIC with the MAC of the inventory")
          : "does the firmware find the disk",
      mode == Mode::Ram ? "it" : "the system");
}

}  // namespace

bool isOnItsWayIntoRam(BootLog& log, const NodeName& node, const Clock& clock) {
  const auto begun = log.underWay(node);
  return begun && *begun && (*begun)->mode == Mode::Ram &&
         clock.now() - (*begun)->at < limitHere(clock, kBootLimit);
}

Restarts::Stage& Restarts::stageOf(const NodeName& node, Mode mode) {
  auto [at, fresh] = stages_.try_emplace(node);
  if (fresh || at->second.mode != mode) at->second = Stage{mode, clock_.steady(), 0, {}, false};
  return at->second;
}

/// Takes over the boot that an earlier controller has begun, unless its time is long over.
Result<void> Restarts::recall(const NodeName& node, Stage& stage) {
  if (!boot_log_) return {};
  TRY(begun, boot_log_->underWay(node));
  if (!begun) return {};
  if (agents_.state(node)) return boot_log_->ended(node);  // it has called meanwhile
  const auto age = std::max(WallTime::duration::zero(), clock_.now() - begun->at);
  if (age > limitHere(clock_, kBootLimit)) return {};
  stage.found = true;
  stage.since = clock_.steady() - std::chrono::duration_cast<std::chrono::milliseconds>(age);
  stage.boots = begun->mode == stage.mode ? 1 : 0;
  return {};
}

Async<std::optional<Again>> Restarts::intoRam(NodeName node, Work work, std::string live) {
  return drive(std::move(node), Mode::Ram, work, std::move(live));
}
Async<std::optional<Again>> Restarts::intoDisk(NodeName node, Work work) {
  return drive(std::move(node), Mode::Disk, work, {});
}

Async<std::optional<Again>> Restarts::drive(NodeName node, Mode mode, Work work, std::string live) {
  const auto state = agents_.state(node);
  const bool is_first_look = !stages_.contains(node);
  auto& known = stageOf(node, mode);
  if (is_first_look) CO_TRY_OK(recall(node, known));
  auto stage = known;
  const bool right_kernel = live.empty() || (state && state->image_digest == live);
  if (state && state->mode == mode && right_kernel &&
      (stage.old_boot.empty() || state->boot_id != stage.old_boot)) {
    co_await arrived(node);
    co_return std::nullopt;
  }
  const auto call_back = mode == Mode::Ram ? kRamCallBack : kCallBack;
  const bool is_booting = stage.boots > 0 || stage.found;
  const auto patience = is_booting || work == Work::Begun ? kBootLimit : call_back;
  // An agent that lives in a RAM OS calls by its pauses, however slow it is, and to wait for one
  // that is not there costs more than a start.
  const bool is_guess = patience == kRamCallBack;
  const std::chrono::milliseconds limit = is_guess ? patience : limitHere(clock_, patience);
  // Whoever could call has had the time since this controller began; a start too many does no harm
  // here.
  if (mode == Mode::Ram && work == Work::None && !is_booting) stage.since = born_;
  CO_TRY(must, co_await mustRestart(node, stage, limit));
  // The same words every time: each change of them is an event.
  if (!must)
    co_return Again{nextPollDelay(clock_.steady() - stage.since, kLookSoon, kLookAgain),
                    fmt::format("the {} of {} to report within {}", systemOf(mode), node.str(),
                                limitText(is_guess ? 1 : slownessOf(clock_), patience))};
  if (stage.boots >= kMaxBoots) {
    co_await arrived(node);  // whoever starts it later did not ask for the RAM OS
    co_return fail(
        Error(ErrorCode::Timeout,
              fmt::format("the {} of {} did not report within {} after each of {} restarts; {}",
                          systemOf(mode), node.str(), limitText(clock_, kBootLimit), kMaxBoots,
                          adviceFor(mode, node, netboot_.usesMedium(node))))
            .retryable(false));
  }
  const auto* refused = dynamic_cast<const gateway::RefusedAgents*>(&agents_);
  if (mode == Mode::Disk && refused && refused->isRefused(node)) {
    forget(node);
    co_return fail(
        Error(ErrorCode::Denied,
              fmt::format("the installed system of {0} runs and reports, but its key is refused, "
                          "so its power is left alone; when it is right as it is: muster bmc "
                          "forget-key {0}. To image it again: muster bmc revoke-key {0}",
                          node.str()))
            .retryable(false));
  }
  CO_TRY_OK(co_await restart(node, mode));
  auto& after = stageOf(node, mode);
  after.since = clock_.steady();
  after.found = false;
  ++after.boots;
  if (state) after.old_boot = state->boot_id;
  co_return Again{kLookSoon, fmt::format("{} to start into the {}", node.str(), systemOf(mode))};
}

/// Only a machine that is off, or known to run the other system, is restarted without a wait.
Async<bool> Restarts::mustRestart(NodeName node, Stage stage, std::chrono::milliseconds limit) {
  if (clock_.steady() - stage.since > limit) co_return true;
  if (stage.boots > 0 && !stage.found) co_return false;
  if (stage.boots == 0 && agents_.state(node)) co_return true;
  auto system = co_await bmcs_.at(node).system();
  if (!system && system.error().canRetry())
    co_return false;  // a power state that nobody knows is no reason to cut power
  if (!system) co_return fail(std::move(system.error()));
  co_return system->power == bmc::PowerState::Off;
}

Task<void> Restarts::takeOut(NodeName node) {
  const auto out = co_await cds_.eject(node);
  if (!out) logWarning("provision", "{}: {}", node.str(), out.error().str());
}

Task<void> Restarts::arrived(NodeName node) {
  netboot_.disarm(node);
  forget(node);
  co_await takeOut(node);
}

Async<std::optional<Again>> Restarts::removeMedium(NodeName node) {
  const auto stage = stages_.find(node);
  bool boots = stage != stages_.end() && stage->second.boots > 0;
  if (!boots && boot_log_ && !agents_.state(node)) {
    CO_TRY(begun, boot_log_->underWay(node));
    boots = begun && begun->mode == Mode::Ram &&
            clock_.now() - begun->at < limitHere(clock_, kBootLimit);
  }
  if (boots)
    co_return Again{kLookAgain,
                    fmt::format("{} to start from its boot medium, or to be given up", node.str())};
  CO_TRY_OK(co_await cds_.eject(node));
  co_return std::nullopt;
}

Async<void> Restarts::restart(NodeName node, Mode mode) {
  auto target = mode == Mode::Ram ? bmc::BootTarget::Pxe : bmc::BootTarget::Disk;
  if (mode == Mode::Ram && netboot_.usesMedium(node)) {
    CO_TRY(inserted, co_await cds_.insert(node));
    target = inserted;
  } else {
    co_await takeOut(node);  // of an earlier start: by another profile, or to another system
    if (mode == Mode::Ram) {
      CO_TRY_OK(netboot_.arm(node));
    } else {
      netboot_.disarm(node);
    }
  }
  auto started = co_await startInto(node, mode, target);
  if (!started) co_await takeOut(node);
  co_return started;
}

/// The boot override goes first: a machine must never start without it and take another turn.
Async<void> Restarts::startInto(NodeName node, Mode mode, bmc::BootTarget target) {
  auto& bmc = bmcs_.at(node);
  CO_TRY_OK(co_await bmc.bootOnce(target));
  CO_TRY(system, co_await bmc.system());
  const bool off = system.power == bmc::PowerState::Off;
  if (boot_log_) CO_TRY_OK(boot_log_->began(node, {mode, clock_.now()}));
  logInfo("provision", "{}: {} into the {}", node.str(), off ? "power on" : "restart",
          systemOf(mode));
  co_return co_await bmc.power(off ? bmc::PowerAction::On : bmc::PowerAction::ForceRestart);
}

}  // namespace muster::provision
