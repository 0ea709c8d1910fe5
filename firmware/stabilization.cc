// SPDX-License-Identifier: Apache-2.0
// When a wave is over: everything runs, several looks in a row, and no network adapter is still
// coming up. One that does not come up gets one more restart of the host; and an update that begins
// only at a restart gets that.
#include "bmc/readiness.h"
#include "firmware/installation.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Outcome;

namespace {

constexpr auto kGoodReadGap = 2s;
constexpr auto kStartPoll = 5s;
constexpr auto kAdapterStarts =
    10min;  ///< from the restart on; POST of a machine with eight GPUs takes half of it
constexpr auto kTaskStarts = 30s;   ///< a NIC's update that has not begun so long after its upload
                                    ///< begins at the restart (Ironic's time)
constexpr auto kSeenStarting = 4s;  ///< … and says so at several looks

}  // namespace

/// What started before anything was switched is not waited for afterwards: some BMCs say Starting
/// for ever. The journal holds it for the process that sees the end of the wave.
Async<void> Installation::noteStarting() {
  if (progress_.starting || !progress_.restarted.empty() || progress_.step == InstallStep::RollBack)
    co_return Result<void>();
  const auto devices = co_await bmc_.devicesNotReady();
  if (!devices) co_return Result<void>();
  progress_.starting.emplace();
  for (const auto& device : *devices) progress_.starting->insert(device.name);
  co_return Result<void>();
}

/// The wave is over once everything runs at several looks in a row, and no adapter is late at any
/// of them.
Async<Outcome> Installation::waitUntilStable() {
  for (int good = 0; good < bmc::kReadsUntilReady; ++good) {
    if (good > 0) {
      co_await clock_.sleep(kGoodReadGap);
      if (const auto read = co_await readInventory(); !read)
        co_return Again{kStartPoll, "the BMC does not answer every time: " + read.error().str()};
      if (!allStagedRun()) co_return Again{kStartPoll, whatIsMissing()};
    }
    const bool in_time =
        progress_.since != WallTime{} && clock_.now() < progress_.since + kAdapterStarts;
    const auto devices = co_await bmc_.devicesNotReady();
    if (!devices && in_time)
      co_return Again{kStartPoll, "its network adapters to be readable: " + devices.error().str()};
    for (const auto& device : devices.value_or(std::vector<bmc::DeviceState>())) {
      if (progress_.starting && progress_.starting->contains(device.name)) continue;
      if (in_time)
        co_return Again{kStartPoll, fmt::format("the network adapter {} to come up ({})",
                                                device.name, device.state)};
      if (device.state != bmc::kStarting) continue;  // that it cannot be read is no word of its own
      if (!progress_.starting && progress_.restarted != device.name) {  // perhaps it always says so
        if (good == 0)
          context_.finding(
              {action_.facet, Severity::Warning,
               fmt::format("the network adapter {} does not come up", device.name),
               fmt::format("its state is {}; whether it was so before the restart is not known",
                           device.state),
               "look at the adapter", clock_.now()});
        continue;
      }
      co_return co_await restartForAdapter(device.name);
    }
  }
  co_return co_await endWave();
}

/// By one more restart of the host.
Async<Outcome> Installation::restartForAdapter(std::string name) {
  if (progress_.restarted.empty()) {
    progress_.restarted = name;
    co_return co_await activate();
  }
  co_return co_await failWave(
      {fmt::format("the network adapter {} does not come up, also {} min after a second restart",
                   name, kAdapterStarts.count()),
       fmt::format("its state is {}", bmc::kStarting),
       "look at the adapter, then: muster firmware retry " + node()});
}

/// A restart that was decided on is not over before the host was off: whoever died in between goes
/// on with it.
bool Installation::owesRestart() const {
  return !progress_.restarted.empty() &&
         (progress_.step == InstallStep::Copy || progress_.step == InstallStep::PowerOff);
}

/// Its image is taken in and waits: as a task, and for some vendors under a second name. Nothing
/// else can be sent meanwhile, so the wave goes on to its restart.
Async<Outcome> Installation::takenUntilRestart() {
  auto list = bmc_.tasks();
  CO_TRY(tasks, co_await std::move(list));
  for (const auto& uri : tasks.running) {
    const auto status = co_await bmc_.task(uri);
    if (status && bmc::isStarting(*status)) progress_.waits.push_back(uri);
  }
  if (progress_.waits.empty())
    co_return Again{kStartPoll, "the BMC to list what waits for the restart"};
  co_return co_await taken();
}

bool Installation::waitsForRestart(const bmc::TaskStatus& status) {
  if (!rowOf(target().component).starts_at_restart || !bmc::isStarting(status)) {
    stopwatch_.starting_since.reset();
    return false;
  }
  if (!stopwatch_.starting_since) stopwatch_.starting_since = clock_.steady();
  return clock_.steady() - *stopwatch_.starting_since >= kSeenStarting &&
         clock_.now() >= progress_.since + kTaskStarts;
}

/// What the BMC works on; "": nothing, but perhaps what begins only when the host restarts and has
/// still not begun.
Async<std::string> Installation::workUnderWay() {
  CO_TRY(tasks, co_await bmc_.tasks());
  for (const auto& uri : tasks.running) {
    if (std::find(progress_.waits.begin(), progress_.waits.end(), uri) == progress_.waits.end())
      co_return uri;
    const auto status = co_await bmc_.task(uri);
    if (!status || (status->state == bmc::TaskState::Running && !bmc::isStarting(*status)))
      co_return uri;
  }
  co_return std::string();
}

/// The same, and what the inventory shows: what must be over before anything is switched.
Async<std::string> Installation::whatIsWritten() {
  CO_TRY(work, co_await workUnderWay());
  co_return work.empty() && isBeingWritten() ? std::string("writing an image") : work;
}

}  // namespace muster::firmware
