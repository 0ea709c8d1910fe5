// SPDX-License-Identifier: Apache-2.0
#include "firmware/rollback.h"

#include "base/utf8.h"
#include "firmware/stabilization.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;

namespace {

constexpr auto kPreviousPoll = 10s;
constexpr std::size_t kMaxWhyBytes = 1'500;

}  // namespace

std::vector<Target> WaveRollback::degradedComponents() const {
  std::vector<Target> out;
  for (const auto& target : wave_.progress().staged) {
    const auto shown =
        std::any_of(wave_.items().begin(), wave_.items().end(), [&](const bmc::FirmwareItem& item) {
          return item.name == target.component && item.unreadable.empty() && !item.version.empty();
        });
    if (!shown && wave_.isDeclared(target)) out.push_back(target);
  }
  for (const auto& item : wave_.items()) {
    const auto* component = wave_.baseline().find(item.name);
    const bool by_agent =
        component && inventory::isInBand(*component);  // silent when the host does not come up
    const bool counted =
        std::any_of(wave_.progress().staged.begin(), wave_.progress().staged.end(),
                    [&](const Target& target) { return target.component == item.name; });
    if (!item.unreadable.empty() && !by_agent && !counted) out.push_back({item.name, {}});
  }
  return out;
}

/// The version that it can go back to without a forbidden combination. Errors: why there is no way
/// back
Async<std::string> WaveRollback::versionBefore(Target worse) {
  CO_TRY(previous, co_await wave_.bmc().previousImage(worse.component));
  Versions versions = wave_.versions();
  const auto before = brokenConstraints(wave_.baseline(), versions);
  versions[worse.component] = previous;
  for (const auto& broken : brokenConstraints(wave_.baseline(), versions))
    if (std::find(before.begin(), before.end(), broken) == before.end())
      co_return fail(
          ErrorCode::Conflict,
          fmt::format("its previous image is {}, which is forbidden here: {}", previous, broken));
  co_return previous;
}

Async<StepResult> WaveRollback::rollBack(Target worse, std::string seen) {
  auto& progress = wave_.progress();
  const auto name = worse.component + " " + worse.version;
  auto previous = co_await versionBefore(worse);
  if (!previous && previous.error().canRetry() &&
      wave_.clock().now() < progress.since + 2 * kStabilizeLimit)
    co_return Again{kPreviousPoll,
                    fmt::format("the way back from {}: {}", name, previous.error().str())};
  FailureReport report{fmt::format("{} left it worse: {} min after its activation {}", name,
                                   kStabilizeLimit.count(), seen),
                       "", "ask the vendor for a part: muster rma " + wave_.node()};
  if (!previous) {
    report.text += fmt::format("; there is no way back: {}", previous.error().str());
    co_return failure_.failWave(std::move(report));
  }
  report.text += fmt::format("; its previous image {} is taken back", *previous);
  failure_.reportFinding(report);
  const auto earlier = progress.failed ? progress.failed->why + "; besides, " : std::string();
  progress.failed =
      Failure{worse, std::string(cutToBytes(earlier + report.text, kMaxWhyBytes)), true};
  std::erase(progress.staged, worse);
  progress.staged.push_back({worse.component, *previous});
  CO_TRY_OK(co_await wave_.record(InstallStep::RollBack, wave_.clock().now()));
  if (auto ordered = co_await wave_.bmc().rollBack(worse.component);
      !ordered && !ordered.error().canRetry()) {
    co_return failure_.failWave({fmt::format("{} could not be taken back to {}: {}",
                                             worse.component, *previous, ordered.error().str()),
                                 "", "ask the vendor for a part: muster rma " + wave_.node()});
  }
  co_return Continuation::Activate;
}

}  // namespace muster::firmware
