// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/bmc_runtime.h"

#include "base/log.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/resource_names.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::lab::vbmc {

BmcRuntime::BmcRuntime(Clock& clock_in, Workers& workers_in, Machine& machine_in,
                       ServiceOptions options_in, BmcState state_in)
    : clock(clock_in),
      workers(workers_in),
      machine(machine_in),
      options(std::move(options_in)),
      behaviour(options.vendor_profile->behaviour()),
      state(std::move(state_in)),
      guard(clock_in, options.account, options.logins) {
  guard.setFailedLogins(state.failed_logins);
  if (!state.account_sha256.empty())
    guard.setAccount(LoginGuard::kFirstAccount, {options.account.username, state.account_salt,
                                                 state.account_sha256, "Administrator"});
  for (const auto& [id, account] : state.accounts) guard.setAccount(id, account);
}

void BmcRuntime::save() {
  state.failed_logins = guard.failedLogins();
  if (options.state_file.empty()) return;
  if (auto saved = state.save(options.state_file); !saved)
    logWarning("vbmc", "{}: {}", options.identity.node, saved.error().str());
}

void BmcRuntime::note(const std::string& words) {
  state.log.push_back(fmt::format("{} {}", muster::toString(clock.now()), words));
  if (state.log.size() > BmcState::kMaxLog) state.log.erase(state.log.begin());
}

void BmcRuntime::violate(const std::string& what) {
  if (state.violations.size() < BmcState::kMaxViolations) state.violations.push_back(what);
  note(what);
}

std::string BmcRuntime::inside(std::string path) const {
  return insideName(std::move(path), behaviour.names);
}

std::vector<std::string> BmcRuntime::inventoryIds() const {
  std::vector<std::string> ids;
  for (const auto& [name, slot] : state.slots) {
    switch (behaviour.member_ids) {
      case MemberIds::Names:
        ids.push_back(name);
        if (behaviour.goes_back == GoesBack::ByActiveImage && name == options.vendor_profile->bmc &&
            !slot.previous_version.empty())
          ids.push_back(name + std::string(kPreviousImage));
        break;
      case MemberIds::Numbers:
        ids.push_back(std::to_string(ids.size() + 1));
        break;
      case MemberIds::InstalledFqdd:
        ids.push_back("Installed-0-" + slot.version + "__" + name);
        if (!slot.previous_version.empty())
          ids.push_back("Previous-0-" + slot.previous_version + "__" + name);
        break;
    }
  }
  for (const auto& [id, job] : ready) ids.push_back(id);
  return ids;
}

bool BmcRuntime::isPrevious(const std::string& id) const {
  const auto ids = inventoryIds();
  return std::find(ids.begin(), ids.end(), id) != ids.end() &&
         (id.starts_with("Previous-") || id.ends_with(kPreviousImage));
}

std::string BmcRuntime::slotOf(const std::string& id) const {
  if (id.ends_with(kPreviousImage)) return id.substr(0, id.size() - kPreviousImage.size());
  if (behaviour.member_ids == MemberIds::InstalledFqdd) {
    const auto mark = id.find("__");
    return mark == std::string::npos ? id : id.substr(mark + 2);
  }
  if (behaviour.member_ids != MemberIds::Numbers) return id;
  const auto ids = inventoryIds();
  const auto at = std::find(ids.begin(), ids.end(), id);
  return at == ids.end() ? id : std::next(state.slots.begin(), at - ids.begin())->first;
}

std::string BmcRuntime::componentAt(const std::string& asked) const {
  const auto uri = inside(asked);
  if (uri == kManager) return std::string(options.vendor_profile->bmc);
  if (uri == kBios) return std::string(options.vendor_profile->bios);
  return uri.starts_with(kInventory + "/") ? slotOf(uri.substr(kInventory.size() + 1))
                                           : std::string();
}

bool BmcRuntime::copying(const std::string& component) const {
  return std::any_of(copies.begin(), copies.end(), [&](const BackgroundCopy& copy) {
    return copy.component == component && clock.steady() < copy.until;
  });
}

std::string BmcRuntime::etagOf(const std::string& path) const {
  std::string key = path;
  if (path.starts_with(kSystem)) {
    key += state.boot_once +
           fmt::format("{}{}", fmt::join(state.staged_bios, ","), fmt::join(state.bios, ","));
    key +=
        fmt::format("{}{}{}{}{}", state.boot_uri, state.locating, fmt::join(state.boot_order, ","),
                    fmt::join(state.staged_boot_order, ","), fmt::join(state.boot_disabled, ","));
  }
  if (path.starts_with(kChassis)) key += fmt::format("{}", state.locating);
  if (path.starts_with(kAccounts))
    for (const auto& [id, account] : guard.accounts())
      key += fmt::format("{} {} {} {} {},", id, account.username, account.salt, account.role,
                         account.enabled);
  if (path == kInventory) key += fmt::format("{}", fmt::join(inventoryIds(), ","));
  return fmt::format("\"{:016x}\"", std::hash<std::string>()(key));
}

io::ServerResponse BmcRuntime::refuseBusy() {
  auto busy =
      redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable",
                   "Another firmware update or a reset is running.", "Wait until it has ended.");
  busy.headers["Retry-After"] = "5";
  return busy;
}

}  // namespace muster::lab::vbmc
