// SPDX-License-Identifier: Apache-2.0
// What a BMC tells by itself over Server-Sent Events (DSP0266 13.5): one connection of muster's
// own, with its session and its pinned certificate. Nothing listens on muster's side, and what
// comes is as authentic as any other answer of that BMC.
#pragma once

#include "bmc/bmc.h"
#include "bmc/redfish/json_view.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

inline constexpr std::chrono::minutes kEventSilence{
    10};  ///< of a stream, then it is opened anew; services send comments more often
inline constexpr std::size_t kMaxEventBytes = 1u << 20;  ///< of one event's data

/// Reads a stream in pieces of any size (WHATWG HTML 9.2.6). Total: what it does not know it skips.
class EventReader {
 public:
  struct Event {
    std::string id, data;
  };
  /// The events that these bytes complete. Errors: Corrupt (an event that is too large)
  Result<std::vector<Event>> take(std::string_view bytes);
  /// Of the last event, for whoever comes back; "" before any.
  const std::string& lastId() const { return last_id_; }
  /// How long to wait before coming back, when the service said so.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  void line(std::string_view text, std::vector<Event>& out);
  std::string rest_, data_, last_id_;
  bool has_data_ = false, skip_newline_ = false;
  std::optional<std::chrono::milliseconds> retry_;
};

/// The records of a Redfish Event, as entries of a log. Lenient; none when it is something else (a
/// metric report).
std::vector<LogEntry> entriesOf(const Json& event);

struct EventStreamPosition {
  std::string last_id;  ///< where a stream before this one ended; "" at first
  std::chrono::milliseconds reconnect_after{3000};  ///< after an end that is none of an error
};

class EventSource {
 public:
  virtual ~EventSource() = default;
  /// Listens until the stream ends, by whomever; answers where. `opened` is called when it stands:
  /// what happened before was not told. Errors: NotFound (this BMC offers no such stream), and
  /// those of any request
  virtual Async<EventStreamPosition> listen(EventStreamPosition from, std::function<void()> opened,
                                            std::function<void(std::vector<LogEntry>)> told) = 0;
};

}  // namespace muster::bmc
