// SPDX-License-Identifier: Apache-2.0
// What OpenSM's log says about the state it is in. OpenSM reports SUBNET UP also when it fell back
// to another routing engine or threw the partitions away; only the log tells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct SmLog {
  bool master = false;     ///< the last state entered is MASTER
  bool standby = false;    ///< the last state entered is STANDBY: another subnet manager is master
  bool subnet_up = false;  ///< the last sweep ended well
  std::size_t sweeps = 0;  ///< how many ended well since the log began
  std::size_t traps = 0;   ///< of links that changed, since the log began; each makes it sweep
  std::string routing_engine;       ///< of the tables in the switches; "" unknown
  bool partitions_refused = false;  ///< by the last sweep: everybody is a full member now
  std::vector<std::string>
      complaints;  ///< error lines since the last sweep but one, at most kMaxComplaints
};
inline constexpr std::size_t kMaxComplaints = 8;

SmLog readSmLog(std::string_view text);

/// The same for a log that grows: what has been read is not read again.
class SmLogReader {
 public:
  SmLogReader() = default;
  explicit SmLogReader(SmLog before)
      : log_(std::move(before)) {}     ///< the log's beginning is gone: what it said
  void feed(std::string_view text);    ///< the next piece, wherever it ends
  void truncated() { rest_.clear(); }  ///< the next piece is the beginning of a line
  SmLog state() const;

 private:
  void line(std::string_view line);
  SmLog log_;
  bool sweep_refused_partitions_ = false;  // of the sweep that has not ended yet
  std::vector<std::string> sweep_complaints_;
  std::string rest_;  // a line that has not ended yet
};

}  // namespace muster::fabric
