// SPDX-License-Identifier: Apache-2.0
#include "bmc/raid_tool.h"

#include "base/json_input.h"
#include "bmc/composite_bmc.h"
#include "bmc/redfish/json_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

namespace muster::bmc {

namespace {

constexpr std::chrono::seconds kShowLimit{120}, kOrderLimit{280};
constexpr std::size_t kMaxShownBytes = 4u << 20, kMaxShownControllers = 64, kMaxParts = 1024;

const Json* listAt(const Json& json, const char* key, std::size_t most) {
  const Json* list = find(json, key);
  return list && list->is_array() && list->size() <= most ? list : nullptr;
}

std::uint64_t bytesOf(const Json& json) {
  const auto bytes = numberAt(json, "size_bytes").value_or(0);
  return bytes > 0 && bytes < 1e19 ? static_cast<std::uint64_t>(std::llround(bytes)) : 0;
}

std::unexpected<Error> bad(const std::string& what) {
  return fail(ErrorCode::Unavailable,
              "the RAID command's `show` printed " + what + "; docs/images.md has its form");
}

Result<RaidController> controllerIn(const Json& json) {
  RaidController out;
  out.id = textAt(json, "id");
  const Json* drives = listAt(json, "drives", kMaxParts);
  const Json* volumes = listAt(json, "volumes", kMaxParts);
  if (out.id.empty() || !drives || !volumes)
    return bad("a controller without id, drives or volumes");
  out.name = textAt(json, "name");
  out.volumes_uri = out.id;
  out.levels = textsAt(json, "levels");
  for (const Json& each : *drives) {
    const auto id = textAt(each, "id");
    if (id.empty()) return bad("a drive without id");
    out.drives.push_back({out.id + "/" + id, id, textAt(each, "serial"), textAt(each, "wwn"),
                          bytesOf(each), textAt(each, "unusable")});
  }
  for (const Json& each : *volumes) {
    RaidVolume volume;
    const auto id = textAt(each, "id");
    const Json* members = listAt(each, "drives", kMaxParts);
    if (id.empty() || !members) return bad("a volume without id or drives");
    volume.uri = out.id + "/" + id;
    volume.name = textAt(each, "name");
    if (volume.name.empty()) volume.name = id;
    volume.level = textAt(each, "level");
    volume.is_settled = true;
    volume.size_bytes = bytesOf(each);
    volume.wwn = textAt(each, "wwn");
    for (const Json& member : *members) volume.drives.push_back(out.id + "/" + textAt(member, {}));
    out.volumes.push_back(std::move(volume));
  }
  return out;
}

std::string idOf(const std::string& uri) { return uri.substr(uri.rfind('/') + 1); }
std::string controllerOf(const std::string& uri) { return uri.substr(0, uri.rfind('/')); }

/// Once each: what an id holds stands for nothing.
std::vector<std::string> filled(std::vector<std::string> words,
                                const std::map<std::string, std::string>& values) {
  for (auto& word : words) {
    std::string out;
    for (std::size_t at = 0; at < word.size();) {
      const auto close = word[at] == '{' ? word.find('}', at) : std::string::npos;
      const auto found =
          close == std::string::npos ? values.end() : values.find(word.substr(at, close - at + 1));
      if (found == values.end()) {
        out += word[at++];
      } else {
        out += found->second;
        at = close + 1;
      }
    }
    word = std::move(out);
  }
  return words;
}

class WithRaidTool final : public ForwardingBmc {
 public:
  WithRaidTool(std::unique_ptr<Bmc> bmc, RaidCommands commands, io::ProcessRunner& processes)
      : ForwardingBmc(*bmc),
        bmc_(std::move(bmc)),
        commands_(std::move(commands)),
        processes_(processes) {}

  Async<std::vector<RaidController>> raidControllers() override {
    CO_TRY(printed, co_await run(commands_.show, kShowLimit));
    co_return raidControllersIn(printed);
  }

  Async<RaidOrder> createVolume(VolumeOrder order) override {
    std::vector<std::string> ids;
    for (const auto& drive : order.drives) ids.push_back(idOf(drive));
    CO_TRY_OK(
        co_await run(filled(commands_.create, {{"{controller}", order.volumes_uri},
                                               {"{level}", order.level},
                                               {"{drives}", fmt::format("{}", fmt::join(ids, ","))},
                                               {"{name}", order.name}}),
                     kOrderLimit));
    co_return RaidOrder{};
  }

  Async<RaidOrder> deleteVolume(std::string uri) override {
    CO_TRY_OK(co_await run(
        filled(commands_.remove, {{"{controller}", controllerOf(uri)}, {"{volume}", idOf(uri)}}),
        kOrderLimit));
    co_return RaidOrder{};
  }

 private:
  Async<std::string> run(std::vector<std::string> words, std::chrono::seconds limit) {
    io::Command command;
    command.program = words.front();
    command.args.assign(words.begin() + 1, words.end());
    command.timeout = limit;
    command.max_output_bytes = kMaxShownBytes;
    CO_TRY(ended, co_await processes_.run(std::move(command)));
    if (ended.code == 0) co_return std::move(ended.out);
    auto said = ended.err.empty() ? ended.out : ended.err;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("the RAID command `{}` ended with {}: {}", fmt::join(words, " "),
                               ended.code, said.substr(said.rfind('\n') + 1)));
  }

  std::unique_ptr<Bmc> bmc_;
  RaidCommands commands_;
  io::ProcessRunner& processes_;
};

}  // namespace

Result<std::vector<RaidController>> raidControllersIn(const std::string& printed) {
  const auto json = jsonOrNone(printed, kFileJson);
  const Json* list = listAt(json, "controllers", kMaxShownControllers);
  if (!list) return bad("no JSON object with a list of controllers");
  std::vector<RaidController> out;
  for (const Json& each : *list) {
    TRY(controller, controllerIn(each));
    out.push_back(std::move(controller));
  }
  return out;
}

std::unique_ptr<Bmc> withRaidTool(std::unique_ptr<Bmc> bmc, RaidCommands commands,
                                  io::ProcessRunner& processes) {
  return std::make_unique<WithRaidTool>(std::move(bmc), std::move(commands), processes);
}

}  // namespace muster::bmc
