// SPDX-License-Identifier: Apache-2.0
#include "firmware/progress.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

namespace muster::firmware {
namespace {

constexpr const char* kNoTime = "-";
constexpr std::string_view kFor = "for:", kWith = "with:", kFailed = "failed:",
                           kRefused = "refused:", kBecause = "because:", kWaits = "waits:",
                           kRestarted = "restarted:", kStarting = "starting:";

Error unknown(const std::string& text) {
  return Error(ErrorCode::Corrupt, "the journal holds an unknown firmware operation: " + text);
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

struct StepName {
  std::string_view first, second;  ///< the more words, the earlier the row
  InstallStep step;
};
constexpr StepName kSteps[] = {{"activate", "off", InstallStep::PowerOff},
                               {"activate", "on", InstallStep::PowerOn},
                               {"activate", "ac", InstallStep::AcCut},
                               {"activate", "copy", InstallStep::Copy},
                               {"activate", "", InstallStep::Activate},
                               {"upload", "", InstallStep::Upload},
                               {"task", "", InstallStep::Follow},
                               {"lost", "", InstallStep::Lost},
                               {"next", "", InstallStep::Next},
                               {"settle", "", InstallStep::Stabilize},
                               {"rollback", "", InstallStep::RollBack},
                               {"over", "", InstallStep::Over}};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Names of components may contain blanks ("System ROM"), and a BMC's words whatever they like.
std::string oneWord(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return replaced(replaced(std::move(text), "%", "%25"), " ", "%20");
}
std::string plain(std::string_view word) {
  return replaced(replaced(replaced(std::string(word), "%20", " "), "%3D", "="), "%25", "%");
}

std::string written(const Target& target) {
  return oneWord(target.component) + "=" + replaced(oneWord(target.version), "=", "%3D");
}

std::optional<Target> readTarget(std::string_view word) {
  const auto at = word.rfind('=');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return Target{plain(word.substr(0, at)), plain(word.substr(at + 1))};
}

}  // namespace

std::string Progress::str() const {
  std::string out;
  for (const auto& target : staged) out += "+" + written(target) + " ";
  if (failed)
    out += fmt::format("{}{} {}{} ", failed->written ? kFailed : kRefused, written(failed->target),
                       kBecause, oneWord(failed->why));
  for (const auto& uri : waits) out += std::string(kWaits) + oneWord(uri) + " ";
  if (starting && starting->empty()) out += std::string(kStarting) + " ";
  for (const auto& name : starting.value_or(std::set<std::string>()))
    out += std::string(kStarting) + oneWord(name) + " ";
  if (!restarted.empty()) out += std::string(kRestarted) + oneWord(restarted) + " ";
  if (step == InstallStep::Look) return staged.empty() ? std::string() : out + "next";
  const auto* name =
      std::ranges::find_if(kSteps, [this](const StepName& row) { return row.step == step; });
  for (const auto& target : with)
    if (isWriting()) out += std::string(kWith) + written(target) + " ";
  if (!current.empty() && isWriting()) out += std::string(kFor) + written(current) + " ";
  out += name->first;
  if (!name->second.empty()) out += " " + std::string(name->second);
  if (step == InstallStep::Next || step == InstallStep::Over) return out;
  if (step == InstallStep::Follow)
    return out + " " + oneWord(task) + (since == WallTime{} ? "" : " " + muster::toString(since));
  if (step == InstallStep::Upload) out += " " + std::to_string(uploads_tried);
  out += " " +
         (step == InstallStep::Upload && since == WallTime{} ? kNoTime : muster::toString(since));
  if (step == InstallStep::Upload)
    for (const auto& uri : tasks_before) out += " " + oneWord(uri);
  return out;
}

Result<Progress> Progress::parse(const std::string& text) {
  auto words = wordsOf(text);
  Progress progress;
  auto next = words.begin();
  for (; next != words.end(); ++next) {
    const std::string_view word = *next;
    if (word.starts_with(kBecause) && progress.failed) {
      progress.failed->why = plain(word.substr(kBecause.size()));
      continue;
    }
    if (word.starts_with(kWaits)) {
      progress.waits.push_back(plain(word.substr(kWaits.size())));
      continue;
    }
    if (word.starts_with(kStarting)) {
      if (!progress.starting) progress.starting.emplace();
      if (word != kStarting) progress.starting->insert(plain(word.substr(kStarting.size())));
      continue;
    }
    if (word.starts_with(kRestarted)) {
      progress.restarted = plain(word.substr(kRestarted.size()));
      continue;
    }
    const auto kinds = {std::string_view("+"), kFor, kWith, kFailed, kRefused};
    const auto* kind = std::find_if(kinds.begin(), kinds.end(),
                                    [&](std::string_view each) { return word.starts_with(each); });
    if (kind == kinds.end()) break;
    auto target = readTarget(word.substr(kind->size()));
    if (!target) return fail(unknown(text));
    if (*kind == "+")
      progress.staged.push_back(std::move(*target));
    else if (*kind == kWith)
      progress.with.push_back(std::move(*target));
    else if (*kind == kFor)
      progress.current = std::move(*target);
    else
      progress.failed = Failure{std::move(*target), {}, *kind == kFailed};
  }
  if (words.empty()) return progress;
  if (next == words.end()) return fail(unknown(text));
  const auto* row = std::ranges::find_if(kSteps, [&](const StepName& name) {
    return *next == name.first && (name.second.empty() || (std::next(next) != words.end() &&
                                                           *std::next(next) == name.second));
  });
  if (row == std::end(kSteps)) return fail(unknown(text));
  progress.step = row->step;
  next += row->second.empty() ? 1 : 2;
  if (progress.step == InstallStep::Over && !progress.failed) return fail(unknown(text));
  if (progress.step == InstallStep::Next || progress.step == InstallStep::Over)
    return next == words.end() ? Result<Progress>(progress) : fail(unknown(text));
  if (progress.step == InstallStep::Upload) {
    if (next == words.end()) return fail(unknown(text));
    auto [end, error] =
        std::from_chars(next->data(), next->data() + next->size(), progress.uploads_tried);
    if (error != std::errc() || end != next->data() + next->size()) return fail(unknown(text));
    ++next;
  }
  if (next == words.end()) return fail(unknown(text));
  if (progress.step == InstallStep::Follow) {
    progress.task = plain(*next++);
    if (next == words.end()) return progress;
  }
  if (progress.step != InstallStep::Upload || *next != kNoTime) {
    auto since = parseWallTime(*next);
    if (!since) return fail(unknown(text));
    progress.since = *since;
  }
  std::transform(next + 1, words.end(), std::back_inserter(progress.tasks_before), plain);
  return progress;
}

}  // namespace muster::firmware
