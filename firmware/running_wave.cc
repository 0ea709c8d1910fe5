// SPDX-License-Identifier: Apache-2.0
#include "firmware/running_wave.h"

#include "inventory/model/firmware.h"

#include <algorithm>

namespace muster::firmware {

Async<void> RunningWave::readInventory() {
  CO_TRY(items, co_await services_.bmc.firmware());
  items_ = std::move(items);
  co_return Result<void>();
}

const bmc::FirmwareItem* RunningWave::find(std::string_view component) const {
  const auto item = std::ranges::find(items_, component, &bmc::FirmwareItem::name);
  return item == items_.end() ? nullptr : &*item;
}

Versions RunningWave::versions() const {
  Versions versions = probesOf(context_.facts(), subject());
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) versions[item.name] = item.version;
  return versions;
}

bool RunningWave::runs(const Target& target) const {
  return std::any_of(items_.begin(), items_.end(), [&](const bmc::FirmwareItem& item) {
    return item.name == target.component && item.unreadable.empty() &&
           lifecycle::matches(target.version, item.version);
  });
}

bool RunningWave::isBeingWritten() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const bmc::FirmwareItem& item) { return item.being_written; });
}

bool RunningWave::allStagedRun() const {
  return std::all_of(progress_.staged.begin(), progress_.staged.end(),
                     [this](const Target& target) { return runs(target); });
}

/// Of vendors that name members inside, an unreadable one may be any.
std::optional<Error> RunningWave::trouble() const {
  const auto& name = component_.name;
  const bmc::FirmwareItem* unread = nullptr;
  for (const auto& item : items_) {
    if (!item.unreadable.empty() && (!unread || item.name == name)) unread = &item;
    if (item.name == name && item.unreadable.empty()) return std::nullopt;
  }
  if (unread)
    return Error(
        ErrorCode::Unavailable,
        fmt::format("{} lists {} but cannot read it now: {}{}", services_.bmc.address(),
                    unread->name, unread->unreadable,
                    unread->name == name ? "" : "; " + name + " is not listed, or it is that one"));
  return Error(ErrorCode::NotFound,
               fmt::format("{} lists no firmware component {}; correct its name in the baseline",
                           services_.bmc.address(), name));
}

std::string RunningWave::whatIsMissing() const {
  if (const auto problem = trouble()) return problem->str();
  auto wanted = progress_.staged;
  if (wanted.empty()) wanted.push_back({component_.name, component_.version});
  std::string words;
  for (const auto& target : wanted) {
    if (runs(target)) continue;
    const auto* item = find(target.component);
    words += fmt::format("{}{} shows {}", words.empty() ? "" : ", ", target.component,
                         item ? item->version : "nothing");
  }
  return words;
}

/// What the BMC works on; "": nothing, but perhaps what begins only when the host restarts and has
/// still not begun.
Async<std::string> RunningWave::workUnderWay() {
  CO_TRY(tasks, co_await services_.bmc.tasks());
  for (const auto& uri : tasks.running) {
    if (std::find(progress_.waits.begin(), progress_.waits.end(), uri) == progress_.waits.end())
      co_return uri;
    const auto status = co_await services_.bmc.task(uri);
    if (!status || (status->state == bmc::TaskState::Running && !bmc::isStarting(*status)))
      co_return uri;
  }
  co_return std::string();
}

Async<std::string> RunningWave::whatIsWritten() {
  CO_TRY(work, co_await workUnderWay());
  co_return work.empty() && isBeingWritten() ? std::string("writing an image") : work;
}

Result<inventory::FirmwareImageFile> RunningWave::imageOf(const Target& target) const {
  if (const auto* component = baseline_.find(target.component)) {
    if (component->version == target.version)
      return inventory::FirmwareImageFile{component->version, component->file, component->sha256};
    for (const auto& intermediate : component->intermediate)
      if (intermediate.version == target.version) return intermediate;
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("the baseline does not declare {} any more; plan again", nameOf(target)));
}

Activation RunningWave::activation() const {
  if (!progress_.restarted.empty()) return Activation::PowerCycle;
  if (progress_.staged.empty()) return activationOf(component_);
  Activation strongest = progress_.waits.empty() ? Activation::None : Activation::PowerCycle;
  for (const auto& target : progress_.staged)
    if (const auto* component = baseline_.find(target.component))
      strongest = std::max(strongest, activationOf(*component));
  return strongest;
}

std::string RunningWave::stagedNames(const std::string& otherwise) const {
  std::string out;
  for (const auto& target : progress_.staged)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", nameOf(target));
  return out.empty() ? otherwise : out;
}

Async<void> RunningWave::record(InstallStep step) {
  progress_.step = step;
  co_return co_await context_.recordOperation(progress_.str());
}

Async<void> RunningWave::record(InstallStep step, WallTime since) {
  progress_.since = since;
  co_return co_await record(step);
}

void RunningWave::stageCurrent() {
  progress_.staged.push_back(target());
  progress_.staged.insert(progress_.staged.end(), progress_.with.begin(), progress_.with.end());
  dropCurrent();
}

void RunningWave::dropCurrent() {
  progress_.current = {};
  progress_.with.clear();
}

}  // namespace muster::firmware
