// Carries a storage plan out with the tools of the RAM OS.
#include "agent/writer/storage_plan.h"

#include "base/io/process.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::agent {

using nlohmann::json;

namespace {

constexpr std::chrono::minutes kStepLimit{10};
constexpr const char* kData = "muster-data";

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<void> runStorageTool(const StorageStep& step, const std::string& key) {
  io::Command command{.program = step.program, .args = step.args};
  command.stdin_text = step.needs_key ? key : step.stdin_text;
  command.timeout = kStepLimit;
  return io::runChecked(command).map([](const std::string&) {});
}

Result<void> runStorage(const StoragePlan& plan, const std::map<std::string, std::string>& keys, const StorageTool& tool,
                        const std::function<void(const std::string&)>& say) {
  for (const StorageStep& step : plan.steps) {
    say(step.set.empty() ? step.what : fmt::format("disks of {}: {}", step.set, step.what));
    const auto key = keys.find(step.set);
    if (step.needs_key && (key == keys.end() || key->second.empty())) return fail(ErrorCode::Internal, fmt::format("disks of {}: there is no key for them", step.set));
    auto done = tool(step, key == keys.end() ? std::string() : key->second);
    if (!done && !step.may_fail) return fail(std::move(done).error().within(fmt::format("disks of {}: {}", step.set, step.what)));
  }
  return {};
}

Finished finishedPartitions(const std::vector<DiskInfo>& disks) {
  Finished finished;
  for (const DiskInfo& disk : disks) {
    const auto told = io::runChecked({.program = "sfdisk", .args = {"--json", disk.path.string()}});
    const json object = told ? json::parse(*told, nullptr, false) : json();
    if (!object.is_object()) continue;
    const json partitions = object.value("partitiontable", json::object()).value("partitions", json::array());
    for (const json& partition : partitions)
      if (partition.value("name", "") == kData) finished.insert(lowerCase(partition.value("uuid", "")));
  }
  return finished;
}

}  // namespace muster::agent
