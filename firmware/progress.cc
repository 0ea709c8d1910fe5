#include "firmware/progress.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

namespace muster::firmware {
namespace {

constexpr const char* kNoTime = "-";

Error unknown(const std::string& text) { return Error(ErrorCode::Corrupt, "the journal holds an unknown firmware operation: " + text); }

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

struct StepName {
  std::string_view first, second;  ///< the more words, the earlier the row
  Step step;
};
constexpr StepName kSteps[] = {{"activate", "off", Step::PowerOff}, {"activate", "on", Step::PowerOn}, {"activate", "", Step::Activate},
                               {"upload", "", Step::Upload},        {"task", "", Step::Follow},        {"settle", "", Step::Settle}};

}  // namespace

std::string Progress::str() const {
  switch (step) {
    case Step::Look: return {};
    case Step::Upload: {
      std::string out = "upload " + std::to_string(uploads_tried) + " " + (since == WallTime{} ? kNoTime : toString(since));
      for (const auto& uri : tasks_before) out += " " + uri;
      return out;
    }
    case Step::Follow: return "task " + task;
    case Step::Activate: return "activate " + toString(since);
    case Step::PowerOff: return "activate off " + toString(since);
    case Step::PowerOn: return "activate on " + toString(since);
    case Step::Settle: return "settle " + toString(since);
  }
  return {};
}

Result<Progress> Progress::parse(const std::string& text) {
  const auto words = wordsOf(text);
  Progress progress;
  if (words.empty()) return progress;
  const auto* row = std::ranges::find_if(kSteps, [&words](const StepName& name) {
    return words[0] == name.first && (name.second.empty() || (words.size() > 1 && words[1] == name.second));
  });
  if (row == std::end(kSteps)) return fail(unknown(text));
  progress.step = row->step;
  auto next = words.begin() + (row->second.empty() ? 1 : 2);
  if (progress.step == Step::Upload) {
    if (next == words.end()) return fail(unknown(text));
    auto [end, error] = std::from_chars(next->data(), next->data() + next->size(), progress.uploads_tried);
    if (error != std::errc() || end != next->data() + next->size()) return fail(unknown(text));
    ++next;
  }
  if (next == words.end()) return fail(unknown(text));
  if (progress.step == Step::Follow) {
    progress.task = *next;
    return progress;
  }
  if (progress.step != Step::Upload || *next != kNoTime) {
    auto since = parseWallTime(*next);
    if (!since) return fail(unknown(text));
    progress.since = *since;
  }
  progress.tasks_before.assign(next + 1, words.end());
  return progress;
}

}  // namespace muster::firmware
