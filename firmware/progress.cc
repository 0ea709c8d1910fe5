#include "firmware/progress.h"

#include <charconv>
#include <sstream>

namespace muster::firmware {

std::string Progress::str() const {
  switch (step) {
    case Step::Look: return {};
    case Step::Upload: {
      std::string out = "upload " + std::to_string(uploads_tried);
      for (const auto& uri : tasks_before) out += " " + uri;
      return out;
    }
    case Step::Follow: return "task " + task;
    case Step::Activate: return "activate";
    case Step::Settle: return "settle " + toString(settle_since);
  }
  return {};
}

Result<Progress> Progress::parse(const std::string& text) {
  std::istringstream words(text);
  std::string word, value;
  Progress progress;
  if (!(words >> word)) return progress;
  words >> value;
  if (word == "upload") {
    progress.step = Step::Upload;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), progress.uploads_tried);
    if (error != std::errc() || end != value.data() + value.size()) return fail(ErrorCode::Corrupt, "the journal holds an unknown firmware operation: " + text);
    while (words >> value) progress.tasks_before.push_back(value);
  } else if (word == "task" && !value.empty()) {
    progress.step = Step::Follow;
    progress.task = value;
  } else if (word == "activate") {
    progress.step = Step::Activate;
  } else if (word == "settle") {
    progress.step = Step::Settle;
    auto since = parseWallTime(value);
    if (!since) return fail(ErrorCode::Corrupt, "the journal holds an unknown firmware operation: " + text);
    progress.settle_since = *since;
  } else {
    return fail(ErrorCode::Corrupt, "the journal holds an unknown firmware operation: " + text);
  }
  return progress;
}

}  // namespace muster::firmware
