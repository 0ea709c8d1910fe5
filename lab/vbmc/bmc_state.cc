#include "lab/vbmc/bmc_state.h"

#include "base/io/files.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

using nlohmann::json;

BmcState BmcState::fresh() {
  BmcState state;
  state.slots["BMC"].version = "2.0.0";
  state.slots["BIOS"].version = "1.4.0";
  return state;
}

Result<BmcState> BmcState::load(const std::filesystem::path& file) {
  std::error_code gone;
  if (!std::filesystem::exists(file, gone)) return fresh();
  TRY(text, io::readFile(file));
  auto root = json::parse(text, nullptr, false);
  try {
    BmcState state;
    for (auto& [name, slot] : root.at("components").items())
      state.slots[name] = {slot.at("version"), slot.at("staged"), slot.at("uploads"), slot.at("flashes")};
    state.boot_once = root.at("boot_once");
    state.failed_logins = root.at("failed_logins");
    state.starts = root.at("starts");
    state.tasks = root.at("tasks");
    return state;
  } catch (const json::exception& problem) {
    return fail(ErrorCode::Corrupt, fmt::format("{} is not a virtual BMC's state: {}", file.string(), problem.what()));
  }
}

Result<void> BmcState::save(const std::filesystem::path& file) const {
  json components = json::object();
  for (auto& [name, slot] : slots)
    components[name] = {{"version", slot.version}, {"staged", slot.staged_version}, {"uploads", slot.uploads}, {"flashes", slot.flashes}};
  json root = {
      {"components", components}, {"boot_once", boot_once}, {"failed_logins", failed_logins}, {"starts", starts}, {"tasks", tasks}};
  return io::writeFileAtomic(file, root.dump(2) + "\n", 0600);
}

}  // namespace muster::lab::vbmc
