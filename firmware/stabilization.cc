// SPDX-License-Identifier: Apache-2.0
#include "firmware/stabilization.h"

#include "base/async/poll.h"
#include "bmc/readiness.h"
#include "firmware/poll_intervals.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Done;

namespace {

constexpr auto kGoodReadGap = 2s;
constexpr auto kAdapterStarts =
    10min;  ///< from the restart on; POST of a machine with eight GPUs takes half of it

}  // namespace

Async<StepResult> Stabilization::awaitVersions(std::string seen) {
  const auto names = wave_.stagedNames(nameOf(wave_.own()));
  if (wave_.clock().now() < wave_.progress().since + kStabilizeLimit) {
    const auto waited = wave_.clock().now() - wave_.progress().since;
    co_return Again{nextPollDelay(waited, kFirstLook, kStabilizePoll),
                    fmt::format("{} to be active: {}", names, seen)};
  }
  std::erase_if(wave_.progress().staged,
                [this](const Target& target) { return wave_.runs(target); });
  if (const auto worse = rollback_.degradedComponents(); worse.size() == 1) {
    co_return co_await rollback_.rollBack(worse.front(), seen);
  }
  co_return failure_.failWave(
      {fmt::format("{} is not active, {} min after its activation: {}", wave_.stagedNames(names),
                   kStabilizeLimit.count(), seen),
       fmt::format("activation {}; the upload was reported as completed",
                   toString(wave_.activation())),
       "check by hand what this component needs to activate; muster does not flash it again by "
       "itself"});
}

Async<StepResult> Stabilization::waitUntilStable() {
  auto& progress = wave_.progress();
  for (int good = 0; good < bmc::kReadsUntilReady; ++good) {
    if (good > 0) {
      co_await wave_.clock().sleep(kGoodReadGap);
      if (const auto read = co_await wave_.readInventory(); !read)
        co_return Again{kStartPoll, "the BMC does not answer every time: " + read.error().str()};
      if (!wave_.allStagedRun()) co_return Again{kStartPoll, wave_.whatIsMissing()};
    }
    const bool in_time =
        progress.since != WallTime{} && wave_.clock().now() < progress.since + kAdapterStarts;
    const auto devices = co_await wave_.bmc().devicesNotReady();
    if (!devices && in_time)
      co_return Again{kStartPoll, "its network adapters to be readable: " + devices.error().str()};
    for (const auto& device : devices.value_or(std::vector<bmc::DeviceState>())) {
      if (progress.starting && progress.starting->contains(device.name)) continue;
      if (in_time)
        co_return Again{kStartPoll, fmt::format("the network adapter {} to come up ({})",
                                                device.name, device.state)};
      if (device.state != bmc::kStarting) continue;  // that it cannot be read is no word of its own
      if (!progress.starting && progress.restarted != device.name) {  // perhaps it always says so
        if (good == 0)
          wave_.context().finding(
              {wave_.action().facet, Severity::Warning,
               fmt::format("the network adapter {} does not come up", device.name),
               fmt::format("its state is {}; whether it was so before the restart is not known",
                           device.state),
               "look at the adapter", wave_.clock().now()});
        continue;
      }
      co_return restartForAdapter(device.name);
    }
  }
  co_return co_await endWave();
}

/// By one more restart of the host.
Continuation Stabilization::restartForAdapter(const std::string& name) {
  if (wave_.progress().restarted.empty()) {
    wave_.progress().restarted = name;
    return Continuation::Activate;
  }
  return failure_.failWave(
      {fmt::format("the network adapter {} does not come up, also {} min after a second restart",
                   name, kAdapterStarts.count()),
       fmt::format("its state is {}", bmc::kStarting),
       "look at the adapter, then: muster firmware retry " + wave_.node()});
}

/// Everything of the wave runs: it becomes the image to fall back to where the BMC asks for that,
/// and the next wave may begin.
Async<StepResult> Stabilization::endWave() {
  auto& progress = wave_.progress();
  for (const auto& target : progress.staged) {
    if (progress.failed && !wave_.isDeclared(target))
      progress.failed->why +=
          fmt::format(", and {} {} runs again", target.component, target.version);
    auto committed = co_await wave_.bmc().commitImage(target.component);
    if (!committed && committed.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(committed.error()));
  }
  progress.staged.clear();
  progress.waits.clear();
  progress.restarted.clear();
  progress.starting.reset();
  if (progress.failed) {
    co_return Continuation::RepeatFailure;
  }
  if (wave_.hasArrived()) co_return Done{};
  progress.current = {};
  CO_TRY_OK(co_await wave_.record(InstallStep::Look));
  co_return Continuation::ChooseUpload;
}

}  // namespace muster::firmware
