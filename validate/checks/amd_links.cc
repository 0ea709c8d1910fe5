// SPDX-License-Identifier: Apache-2.0
// XGMI between AMD Instinct GPUs: what the topology says of each pair, and whether the links are
// up.
//
// Source: `amd-smi topology --json` and `amd-smi xgmi --link-status --json` as amd-smi's own
// sources print them (ROCm 6.2 to 7.1). Releases before 7 print a list of GPUs without status
// before the list with it; later ones put either into an object.
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "validate/checks/external_program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::validate {
namespace {

using nlohmann::json;
constexpr double kSmiSeconds = 60;

/// The list of GPUs whose entries have `member`.
Result<std::map<int, json>> gpusWith(std::string_view text, const char* member) {
  constexpr std::string_view kNextList = "]\n[";
  std::map<int, json> gpus;
  while (!text.empty()) {
    const auto end = text.find(kNextList);
    auto root = jsonOrNone(text.substr(0, end == text.npos ? end : end + 1), kToolJson);
    text.remove_prefix(end == text.npos ? text.size() : end + 2);
    if (root.is_object())
      for (const char* key : {"gpu_data", member, "topology"})
        if (root.is_object() && root.contains(key) && root[key].is_array()) root = root[key];
    if (!root.is_array()) return fail(ErrorCode::Corrupt, "it printed no list of GPUs");
    for (auto& gpu : root) {
      if (!gpu.is_object() || !gpu.contains("gpu") || !gpu["gpu"].is_number_integer())
        return fail(ErrorCode::Corrupt, "an entry without a GPU's number");
      if (!gpu.contains(member)) continue;
      if (!gpu[member].is_array())
        return fail(ErrorCode::Corrupt,
                    fmt::format("the {} of GPU {} is no list", member, gpu["gpu"].get<int>()));
      const int number = gpu["gpu"].get<int>();
      if (!gpus.emplace(number, std::move(gpu)).second)
        return fail(ErrorCode::Corrupt, fmt::format("GPU {} is there twice", number));
    }
  }
  return gpus;
}

Result<std::map<int, json>> ask(const Host& host, std::vector<std::string> args,
                                const char* member) {
  const auto named = fmt::format("amd-smi {}", fmt::join(args, " "));
  TRY(done, runProgram(host, "amd-smi", std::move(args), kSmiSeconds));
  if (done.code != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("{} ended with {}: {}", named, done.code, cutToBytes(done.err, 300)));
  auto gpus = gpusWith(done.out, member);
  if (!gpus) return fail(ErrorCode::Corrupt, fmt::format("{}: {}", named, gpus.error().str()));
  return gpus;
}

std::string textAt(const json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

/// Every other GPU one hop away by XGMI, and allowed to be reached.
Result<void> evaluateTopology(const std::map<int, json>& gpus, std::vector<std::string>& wrong) {
  for (const auto& [number, gpu] : gpus) {
    std::set<int> seen;
    for (const auto& link : gpu.at("links")) {
      if (!link.is_object() || !link.contains("gpu") || !link["gpu"].is_number_integer())
        return fail(ErrorCode::Corrupt, fmt::format("a link of GPU {} without an end", number));
      const int other = link["gpu"].get<int>();
      if (!gpus.contains(other) || !seen.insert(other).second)
        return fail(
            ErrorCode::Corrupt,
            fmt::format("GPU {} has a link to GPU {} twice, or that is no GPU", number, other));
      if (other == number) continue;
      const auto type = textAt(link, "link_type"), status = textAt(link, "link_status");
      if (type.empty() || status.empty())
        return fail(
            ErrorCode::Corrupt,
            fmt::format("the link of GPU {} to GPU {} has no type or status", number, other));
      if (type != "XGMI")
        wrong.push_back(
            fmt::format("GPU {} reaches GPU {} by {}, not by XGMI", number, other, type));
      else if (status != "ENABLED")
        wrong.push_back(fmt::format("GPU {} may not reach GPU {}: {}", number, other, status));
      else if (const auto hops = link.find("num_hops"); hops != link.end() && *hops != 1)
        wrong.push_back(fmt::format("GPU {} is {} XGMI links from GPU {}, not one", number,
                                    jsonText(*hops), other));
    }
    if (seen.size() != gpus.size())
      return fail(ErrorCode::Corrupt, fmt::format("GPU {} shows links to {} of {} GPUs", number,
                                                  seen.size(), gpus.size()));
  }
  return {};
}

struct LinkCount {
  int up = 0, down = 0, disabled = 0;
};

/// U up, D down, X disabled. A GPU has as many places as its chip has links; that which leads to
/// itself is X, or says so.
Result<LinkCount> linksOf(int number, const json& gpu) {
  LinkCount count;
  for (const auto& entry : gpu.at("link_status")) {
    const auto word = entry.is_string() ? entry.get<std::string>() : std::string();
    if (word == "U")
      ++count.up;
    else if (word == "D")
      ++count.down;
    else if (word == "X")
      ++count.disabled;
    else if (word != "SELF")
      return fail(ErrorCode::Corrupt, fmt::format("GPU {} has the link status '{}'", number, word));
  }
  return count;
}

}  // namespace

Verdict checkGpuXgmi(const nlohmann::json& params, const Host& host) {
  const auto topology = ask(host, {"topology", "--json"}, "links");
  if (!topology) return noData(topology.error().str());
  const auto status = ask(host, {"xgmi", "--link-status", "--json"}, "link_status");
  if (!status) return noData(status.error().str());
  const auto count = params.value("gpus", topology->size());
  if (count < 2) return noData(fmt::format("{} GPUs: there is no link between them", count));
  if (topology->size() != count || status->size() != count)
    return noData(
        fmt::format("amd-smi shows the topology of {} and the links of {} GPUs, {} expected",
                    topology->size(), status->size(), count));
  std::vector<std::string> wrong;
  if (const auto read = evaluateTopology(*topology, wrong); !read)
    return noData(read.error().str());
  const auto links = params.value("links", static_cast<int>(count) - 1);
  double up = 0;
  for (const auto& [number, gpu] : *status) {
    if (!topology->contains(number))
      return noData(fmt::format("the topology does not show GPU {}", number));
    const auto seen = linksOf(number, gpu);
    if (!seen) return noData(seen.error().str());
    up += seen->up;
    if (seen->down > 0 || seen->up != links)
      wrong.push_back(fmt::format("GPU {} ({}): {} of {} XGMI links are up, {} down, {} disabled",
                                  number, textAt(gpu, "bdf"), seen->up, links, seen->down,
                                  seen->disabled));
  }
  auto verdict = wrong.empty() ? pass(fmt::format("{} GPUs, {} XGMI links up on each, every pair "
                                                  "reached by them",
                                                  count, links))
                               : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.values = {{"gpus", static_cast<double>(count)}, {"links_up", up}};
  return verdict;
}

}  // namespace muster::validate
