// SPDX-License-Identifier: Apache-2.0
#include "app/site/rack_state.h"

#include "app/site/state_folder.h"
#include "app/site/state_lock.h"
#include "base/io/files.h"

#include <algorithm>
#include <array>

namespace muster::app {
namespace {

constexpr std::array<std::string_view, 4> kOfTheSite{
    "ca", "keys", "keys.made", "keys.signer"};  // images in the cache are signed with them
constexpr std::string_view kMarker = "lab-rack", kStore = "muster.db";
constexpr std::size_t kMaxIdBytes = 128;

Result<std::string> rackOf(const std::filesystem::path& state) {
  std::error_code error;
  if (!std::filesystem::exists(state / kMarker, error)) return std::string();
  return io::readFile(state / kMarker, kMaxIdBytes);
}

bool isOfTheSite(const std::filesystem::path& entry) {
  const auto name = entry.filename().string();
  return name == kMarker ||
         std::find(kOfTheSite.begin(), kOfTheSite.end(), name) != kOfTheSite.end();
}

Result<void> setAside(const std::filesystem::path& state, const std::filesystem::path& before) {
  std::error_code error;
  std::filesystem::remove_all(before, error);
  TRY_OK(io::makeDirs(before, kStateFolderMode));
  std::vector<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(state, error))
    entries.push_back(entry.path());
  for (const auto& entry : entries) {
    if (isOfTheSite(entry)) continue;
    std::filesystem::rename(entry, before / entry.filename(), error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot set {} aside: {}", entry.string(), error.message()));
  }
  return {};
}

}  // namespace

Result<void> bindToRack(const std::filesystem::path& state, const std::string& store,
                        const std::string& rack_id,
                        const std::function<void(std::string_view)>& say) {
  TRY_OK(io::makeDirs(state, kStateFolderMode));
  TRY(bound, rackOf(state));
  if (bound == rack_id) return {};
  std::error_code error;
  if (bound.empty() && std::filesystem::exists(state / kStore, error))
    return fail(ErrorCode::Conflict,
                fmt::format("the records in {} were not made with this rack of the lab; name a "
                            "state folder of the lab's own (MUSTER_STATE)",
                            state.string()));
  if (!bound.empty() && !store.empty())
    return fail(ErrorCode::Conflict,
                fmt::format("the store that MUSTER_STORE names has the records of a rack that is "
                            "gone; empty it and remove {}",
                            (state / kMarker).string()));
  if (!bound.empty()) {
    auto turn = acquireLock(state);  // nobody works with it while it moves
    if (!turn) return fail(turn.error().within("the state of the rack before cannot be set aside"));
    auto before = state;
    before += ".before";
    TRY_OK(setAside(state, before));
    say(fmt::format("this rack is new: the state of the one before lies in {}", before.string()));
  }
  return io::writeFileAtomic(state / kMarker, rack_id, kStateFileMode);
}

Result<void> checkBoundTo(const std::filesystem::path& state, const std::string& rack_id) {
  TRY(bound, rackOf(state));
  if (bound.empty() || bound == rack_id) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format("the state in {} is of a rack that is gone; 'muster lab up' begins a new one",
                  state.string()));
}

}  // namespace muster::app
