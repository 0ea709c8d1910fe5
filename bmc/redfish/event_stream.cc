// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/event_stream.h"

#include "base/utf8.h"

#include <algorithm>
#include <charconv>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxRecords = 64;  ///< of one event
constexpr std::size_t kMaxMessageBytes = 2000;
constexpr std::chrono::milliseconds kShortestRetry{100}, kLongestRetry{300'000};

std::string shortened(std::string text) {
  text.resize(cutToBytes(text, kMaxMessageBytes).size());
  return text;
}

}  // namespace

Result<std::vector<EventReader::Event>> EventReader::take(std::string_view bytes) {
  std::vector<Event> out;
  while (!bytes.empty()) {
    if (std::exchange(skip_newline_, false) && bytes.front() == '\n') {  // of CR LF
      bytes.remove_prefix(1);
      continue;
    }
    const auto end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    rest_ += bytes.substr(0, end);
    if (rest_.size() + data_.size() > kMaxEventBytes)
      return fail(ErrorCode::Corrupt,
                  fmt::format("an event is larger than {} bytes", kMaxEventBytes));
    if (end == bytes.size()) break;
    skip_newline_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    line(rest_, out);
    rest_.clear();
  }
  return out;
}

void EventReader::line(std::string_view text, std::vector<Event>& out) {
  if (text.empty()) {
    if (has_data_) out.push_back({last_id_, std::exchange(data_, {})});
    has_data_ = false;
    return;
  }
  const auto colon = text.find(':');
  const auto field = text.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    last_id_ = value;
  } else if (field == "retry") {
    long long milliseconds = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    if (error == std::errc() && end == value.data() + value.size() && milliseconds >= 0)
      retry_ = std::clamp(std::chrono::milliseconds(milliseconds), kShortestRetry, kLongestRetry);
  }
}

std::vector<LogEntry> entriesOf(const Json& event) {
  std::vector<LogEntry> out;
  const auto* records = find(event, "Events");
  if (!records || !records->is_array()) return out;
  for (const auto& record : *records) {
    if (out.size() == kMaxRecords) break;
    LogEntry entry{textAt(record, "EventId"), textAt(record, "EventTimestamp"),
                   textAt(record, "MessageSeverity"), shortened(textAt(record, "Message"))};
    if (entry.severity.empty()) entry.severity = textAt(record, "Severity");
    if (entry.message.empty()) entry.message = shortened(textAt(record, "MessageId"));
    if (!entry.message.empty()) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace muster::bmc
