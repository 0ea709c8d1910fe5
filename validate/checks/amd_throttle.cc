// SPDX-License-Identifier: Apache-2.0
// Why AMD Instinct GPUs are held back: counters of the firmware by reason, twice, and what holds
// now.
//
// Source: amd-smi's "GPU violations" and its change log. From MI300 on `throttle` has a counter
// (`X_accumulated`, ROCm 6.3 and later) and a status (`X_violation_status`, before 6.4
// `X_violation_active`) by reason; MI200 has only `power.throttle_status`, without a reason. What a
// GPU does not have is "N/A". All of `amd-smi metric` is asked for, because the word for this part
// of it has changed (`--throttle`, `--violation`).
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "validate/checks/external_program.h"

#include <fmt/ranges.h>

#include <array>
#include <map>
#include <thread>

namespace muster::validate {
namespace {

using nlohmann::json;
constexpr double kMetricSeconds = 60, kWatchSeconds = 2;

struct ReasonRow {
  const char* name;
  const char* words;
  bool allowed;  ///< at its power limit a GPU is as it should be
};
constexpr std::array kReasons{
    ReasonRow{"prochot", "its board (PROCHOT)", false},
    ReasonRow{"ppt", "its power limit", true},
    ReasonRow{"socket_thermal", "heat of the socket", false},
    ReasonRow{"vr_thermal", "heat of its voltage regulators", false},
    ReasonRow{"hbm_thermal", "heat of its HBM", false},
};

struct Reason {
  std::optional<double> count;
  std::optional<bool> now;
};
struct HeldBack {
  std::array<Reason, kReasons.size()> reasons;
  std::optional<double> counted;  ///< so often has the firmware looked
  std::optional<bool> without_reason;
};

bool isAbsent(const json& value) { return value.is_null() || value == "N/A"; }

/// Nothing where there is "N/A". Errors: Corrupt (another word)
Result<std::optional<double>> numberAt(const json& object, const std::string& key) {
  const auto value = object.value(key, json());
  const auto& plain = value.is_object() && value.contains("value") ? value["value"] : value;
  if (isAbsent(plain)) return std::nullopt;
  if (!plain.is_number() || plain.get<double>() < 0)
    return fail(ErrorCode::Corrupt, fmt::format("{} is no count: {}", key, jsonText(plain)));
  return plain.get<double>();
}
Result<std::optional<bool>> stateAt(const json& object, const std::string& key, const char* yes,
                                    const char* no) {
  const auto value = object.value(key, json());
  if (isAbsent(value)) return std::nullopt;
  if (value == yes || value == no) return value == yes;
  return fail(ErrorCode::Corrupt, fmt::format("{} is unknown: {}", key, jsonText(value)));
}

Result<HeldBack> heldBack(const json& gpu) {
  HeldBack seen;
  const auto throttle = gpu.value("throttle", json::object()),
             power = gpu.value("power", json::object());
  if (power.is_object()) {
    TRY(state, stateAt(power, "throttle_status", "THROTTLED", "UNTHROTTLED"));
    seen.without_reason = state;
  }
  if (!throttle.is_object()) return seen;
  TRY(counted, numberAt(throttle, "accumulation_counter"));
  seen.counted = counted;
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    const std::string name = kReasons[i].name;
    TRY(count, numberAt(throttle, name + "_accumulated"));
    const auto* key = throttle.contains(name + "_violation_status") ? "_status" : "_active";
    TRY(now, stateAt(throttle, name + "_violation" + key, "ACTIVE", "NOT ACTIVE"));
    seen.reasons[i] = {count, now};
  }
  return seen;
}

Result<std::map<int, HeldBack>> look(const Host& host) {
  TRY(done, runProgram(host, "amd-smi", {"metric", "--json"}, kMetricSeconds));
  if (done.code != 0)
    return fail(ErrorCode::Unavailable, fmt::format("amd-smi metric --json ended with {}: {}",
                                                    done.code, cutToBytes(done.err, 300)));
  auto root = jsonOrNone(done.out, kToolJson);
  if (root.is_object() && root.contains("gpu_data")) root = root["gpu_data"];
  if (!root.is_array())
    return fail(ErrorCode::Corrupt, "amd-smi metric --json printed no list of GPUs");
  std::map<int, HeldBack> gpus;
  for (const auto& gpu : root) {
    if (!gpu.is_object() || !gpu.contains("gpu") || !gpu["gpu"].is_number_integer())
      return fail(ErrorCode::Corrupt, "amd-smi metric lists something without a GPU's number");
    const int number = gpu["gpu"].get<int>();
    auto seen = heldBack(gpu);
    if (!seen) return fail(std::move(seen.error()).within(fmt::format("GPU {}", number)));
    if (!gpus.emplace(number, *seen).second)
      return fail(ErrorCode::Corrupt, fmt::format("amd-smi metric has GPU {} twice", number));
  }
  return gpus;
}

/// What is wrong with one GPU; nothing: it is not held back. Errors: NotFound, it does not say
Result<std::vector<std::string>> evaluate(const HeldBack& before, const HeldBack& after) {
  std::vector<std::string> wrong;
  int told = 0;
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    const auto &then = before.reasons[i], &now = after.reasons[i];
    told += now.count || now.now;
    if (kReasons[i].allowed) continue;
    if (then.count && now.count && *now.count < *then.count)
      wrong.push_back(fmt::format("the counter of {} went back: it was reset", kReasons[i].words));
    else if (then.count && now.count && *now.count > *then.count)
      wrong.push_back(fmt::format("held back by {}, counted {} times while it was watched",
                                  kReasons[i].words, *now.count - *then.count));
    else if (now.now.value_or(false))
      wrong.push_back(fmt::format("held back by {} now", kReasons[i].words));
  }
  if (told == 0 && !after.without_reason)
    return fail(ErrorCode::NotFound, "amd-smi names no reasons of throttling");
  if (told == 0 && *after.without_reason)
    wrong.emplace_back("it is held back now; this model does not tell amd-smi by what");
  return wrong;
}

/// Of the time since its firmware began to count, how much of it was heat or the board.
double shareOf(const HeldBack& seen) {
  double most = 0;
  for (std::size_t i = 0; i < kReasons.size(); ++i)
    if (const auto& count = seen.reasons[i].count; count && !kReasons[i].allowed)
      most = std::max(most, *count);
  return seen.counted.value_or(0) > 0 ? 100 * most / *seen.counted : 0;
}

}  // namespace

Verdict checkGpuAmdThrottle(const nlohmann::json& params, const Host& host) {
  const auto before = look(host);
  if (!before) return noData(before.error().str());
  std::this_thread::sleep_for(std::chrono::duration<double>(
      params.value("window_seconds", kWatchSeconds)));  // the window of the measurement
  const auto after = look(host);
  if (!after) return noData(after.error().str());
  const auto count = params.value("gpus", after->size());
  if (after->empty() || after->size() != count || before->size() != count)
    return noData(fmt::format("amd-smi shows {}, then {} GPUs, {} expected", before->size(),
                              after->size(), count));
  std::vector<std::string> wrong;
  double share = 0;
  for (const auto& [number, now] : *after) {
    const auto then = before->find(number);
    if (then == before->end()) return noData(fmt::format("GPU {} came meanwhile", number));
    const auto found = evaluate(then->second, now);
    if (!found) return noData(fmt::format("GPU {}: {}", number, found.error().str()));
    for (const auto& one : *found) wrong.push_back(fmt::format("GPU {}: {}", number, one));
    share = std::max(share, shareOf(now));
  }
  auto verdict =
      wrong.empty()
          ? pass(fmt::format("{} GPUs, none held back by heat or its board", after->size()))
          : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.values = {{"held_back_percent", share}};
  return verdict;
}

}  // namespace muster::validate
