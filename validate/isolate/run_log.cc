// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/run_log.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::validate::isolate {
namespace {

using nlohmann::json;
constexpr std::size_t kMaxBytes = 512u << 20;
constexpr const char* kFormat = "muster-isolation/1";
constexpr const char* kBegunFile = "begun.json";
constexpr int kMostRounds = 1'000;  ///< of a copy: more than any isolation has

std::string nameOf(int number) { return fmt::format("round-{:03}.json", number); }

/// JSON has no NaN: what said nothing is null.
json toJson(double value) { return std::isfinite(value) ? json(value) : json(); }
double numberOf(const json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

json toJson(const RoundResult& result) {
  json groups = json::array();
  for (const auto& group : result) {
    json rails = json::array(), peers = json::array();
    for (const double rate : group.rail_gbits) rails.push_back(toJson(rate));
    for (const float rate : group.peer_gbits) peers.push_back(toJson(static_cast<double>(rate)));
    groups.push_back({{"rails", std::move(rails)}, {"peers", std::move(peers)}});
  }
  return groups;
}

RoundResult resultOf(const json& groups) {
  RoundResult result;
  for (const auto& from : groups) {
    GroupResult group;
    for (const auto& rate : from.at("rails")) group.rail_gbits.push_back(numberOf(rate));
    for (const auto& rate : from.at("peers"))
      group.peer_gbits.push_back(static_cast<float>(numberOf(rate)));
    result.push_back(std::move(group));
  }
  return result;
}

std::unexpected<Error> damaged(const std::filesystem::path& file, std::string_view why) {
  return fail(ErrorCode::Corrupt,
              fmt::format("{} is damaged ({}); remove its folder to start the isolation again",
                          file.string(), why));
}

Result<json> readJson(const std::filesystem::path& file) {
  TRY(text, io::readFile(file, kMaxBytes));
  auto parsed = jsonOrNone(text, kKeptJson);
  if (!parsed.is_object() || parsed.value("format", "") != kFormat)
    return damaged(file, "no such JSON");
  return parsed;
}

}  // namespace

/// The folder first: the copy is for who cannot see it.
Result<void> RunLog::write(const std::string& name, const std::string& text) const {
  TRY_OK(io::makeDirs(folder_, 0700));
  TRY_OK(io::writeFileAtomic(folder_ / name, text, 0600));
  return copy_ ? copy_->put(name, text) : Result<void>();
}

/// What was begun comes last: without it nothing is under way here.
Result<void> RunLog::fetch() {
  std::error_code error;
  if (!copy_ || std::filesystem::exists(folder_ / kBegunFile, error)) return {};
  TRY(begun, copy_->get(kBegunFile));
  if (!begun) return {};
  std::filesystem::remove_all(folder_, error);
  TRY_OK(io::makeDirs(folder_, 0700));
  for (int number = 1; number <= kMostRounds; ++number) {
    TRY(round, copy_->get(nameOf(number)));
    if (!round) break;
    TRY_OK(io::writeFileAtomic(folder_ / nameOf(number), *round, 0600));
  }
  return io::writeFileAtomic(folder_ / kBegunFile, *begun, 0600);
}

Result<std::optional<Begun>> RunLog::begun() const {
  const auto file = folder_ / kBegunFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  TRY(kept, readJson(file));
  try {
    Begun out;
    out.run_id = kept.at("run_id").get<std::string>();
    TRY(at, parseWallTime(kept.at("at").get<std::string>()));
    TRY(kind, parseEngine(kept.at("engine").get<std::string>()));
    TRY(site, siteFromJson(kept.at("site")));
    out.at = at, out.engine = {kind, kept.at("ranks_per_node").get<int>()},
    out.site = std::move(site);
    out.seed = kept.at("seed").get<std::uint64_t>();
    if (kept.at("least_gbits").is_number()) out.least_gbits = kept.at("least_gbits").get<double>();
    const auto until = proofOf(kept.value("until", std::string()));
    if (!until) return damaged(file, "it ends with a word that this muster does not know");
    out.until = *until;
    return out;
  } catch (const json::exception& thrown) {
    return damaged(file, thrown.what());
  }
}

Result<void> RunLog::begin(const Begun& begun) {
  const json kept{{"format", kFormat},
                  {"run_id", begun.run_id},
                  {"at", muster::toString(begun.at)},
                  {"engine", toString(begun.engine.kind)},
                  {"ranks_per_node", begun.engine.ranks_per_node},
                  {"seed", begun.seed},
                  {"least_gbits", begun.least_gbits ? json(*begun.least_gbits) : json()},
                  {"until", toString(begun.until)},
                  {"site", siteToJson(begun.site)}};
  return write(kBegunFile, jsonText(kept, 1));
}

Result<std::vector<LoggedRound>> RunLog::rounds() const {
  std::vector<LoggedRound> rounds;
  std::error_code error;
  for (int number = 1; std::filesystem::exists(folder_ / nameOf(number), error); ++number) {
    const auto file = folder_ / nameOf(number);
    TRY(kept, readJson(file));
    try {
      rounds.push_back({resultOf(kept.at("result")), kept.at("evidence")});
    } catch (const json::exception& thrown) {
      return damaged(file, thrown.what());
    }
  }
  return rounds;
}

Result<void> RunLog::add(int number, const LoggedRound& round) {
  return write(nameOf(number), jsonText(json{{"format", kFormat},
                                             {"result", toJson(round.result)},
                                             {"evidence", round.evidence}}));
}

Result<void> RunLog::remove() {
  // First what was begun: without it nothing is under way.
  if (copy_) {
    TRY_OK(copy_->forget(kBegunFile));
    for (int number = 1; number <= kMostRounds; ++number) {
      TRY(round, copy_->get(nameOf(number)));
      if (!round) break;
      TRY_OK(copy_->forget(nameOf(number)));
    }
  }
  std::error_code error;
  std::filesystem::remove(folder_ / kBegunFile, error);
  std::filesystem::remove_all(folder_, error);
  if (error)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot remove {}: {}", folder_.string(), error.message()));
  return {};
}

}  // namespace muster::validate::isolate
