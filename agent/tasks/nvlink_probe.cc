// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/nvlink_probe.h"

#include "base/json_input.h"

#include <nlohmann/json.hpp>

#include <set>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds kToolLimit{10};
constexpr const char* kChannel = "dev/nvidia-caps-imex-channels/channel0";
constexpr std::size_t kNamedNodes = 4;

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

/// A member that should be text; a tool of another version may say a number, or nothing.
std::string wordOf(const json& object, const char* key, std::string otherwise) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : otherwise;
}

/// Ways of one node to others that are not there, of a node that says it is ready.
std::vector<std::string> brokenWays(const json& node) {
  std::vector<std::string> out;
  const auto ways = node.value("connections", json::object());
  for (const auto& [index, way] : ways.items())
    if (const auto state = wordOf(way, "status", "not told"); state != "CONNECTED")
      out.push_back(fmt::format("{} to {} {}", wordOf(node, "host", "a node"),
                                wordOf(way, "host", index), state));
  return out;
}

}  // namespace

Result<std::string> imexState(std::string_view text) {
  const auto parsed = jsonOrNone(text, kToolJson);
  if (!parsed.is_object() || !parsed.contains("status") || !parsed["status"].is_string() ||
      !parsed.contains("nodes") || !parsed["nodes"].is_object())
    return fail(ErrorCode::Corrupt,
                fmt::format("nvidia-imex-ctl -N -j printed: {}", text.substr(0, 200)));
  const auto status = parsed["status"].get<std::string>();
  std::vector<std::string> wrong;
  std::set<std::string> versions;
  for (const auto& [index, node] : parsed["nodes"].items()) {
    const auto state = wordOf(node, "status", "not told");
    if (node.is_object() && node.contains("version") && node["version"].is_string())
      versions.insert(node["version"].get<std::string>());
    if (state != "READY")
      wrong.push_back(fmt::format("{} {}", wordOf(node, "host", index), state));
    else
      for (auto& way : brokenWays(node)) wrong.push_back(std::move(way));
  }
  if (status == "UP" && wrong.empty() && versions.size() <= 1)
    return fmt::format("UP nodes={}", parsed["nodes"].size());
  if (versions.size() > 1)
    wrong.push_back(fmt::format("versions {}", fmt::join(versions, " and ")));
  const auto more = wrong.size() > kNamedNodes ? wrong.size() - kNamedNodes : 0;
  wrong.resize(std::min(wrong.size(), kNamedNodes));
  return fmt::format("{}: {}{}", status == "UP" ? "NOT READY" : status, fmt::join(wrong, ", "),
                     more ? fmt::format(" and {} more", more) : "");
}

Task<std::string> imexProbe(TaskTools tools) {
  std::error_code ignored;
  std::vector<std::string> args = {"-N", "-j"};
  auto out = co_await runTool(tools, "nvidia-imex-ctl", std::move(args), kToolLimit);
  if (!out) co_return "no answer: " + out.error().str();
  auto state = imexState(*out);
  if (!state) co_return "no answer: " + state.error().str();
  if (state->starts_with("UP ") && !fs::exists(tools.root / kChannel, ignored))
    co_return fmt::format(
        "no channel: /{} is not there; load nvidia with NVreg_CreateImexChannel0=1", kChannel);
  co_return std::move(*state);
}

Task<std::string> nvlinkDomainProbe(TaskTools tools) {
  std::vector<std::string> args = {"tool", "nvlink-domain"};
  auto out = co_await runTool(tools, tools.self.string(), std::move(args), kToolLimit);
  co_return out ? trimmed(*out) : "none: " + out.error().str();
}

}  // namespace muster::agent
