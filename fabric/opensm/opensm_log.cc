// SPDX-License-Identifier: Apache-2.0
#include "fabric/opensm/opensm_log.h"

namespace muster::fabric {

namespace {

bool has(std::string_view line, std::string_view what) {
  return line.find(what) != std::string_view::npos;
}

/// "Nov 20 14:28:41 330887 [7AB3A6C0] 0x02 -> TEXT" → TEXT
std::string_view messageOf(std::string_view line) {
  auto at = line.find(" -> ");
  return at == std::string_view::npos ? line : line.substr(at + 4);
}

/// "osm_ucast_mgr_process: ftree tables configured on all switches" → ftree
std::string engineOf(std::string_view message) {
  auto end = message.find(" tables configured");
  auto from = message.rfind(' ', end - 1);
  return std::string(message.substr(from + 1, end - from - 1));
}

// Level 0x01 is OSM_LOG_ERROR. Traps of cables that went up and down are logged there too; the
// cabling check speaks of those.
bool isComplaint(std::string_view line) {
  return has(line, " ERR ") || (has(line, " 0x01 -> ") && !has(line, "log_trap_info"));
}

}  // namespace

void SmLogReader::feed(std::string_view text) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (rest_.empty()) {
      line(text.substr(0, end));
    } else {
      rest_.append(text.substr(0, end));
      line(rest_);
      rest_.clear();
    }
    text.remove_prefix(end + 1);
  }
  rest_.append(text);
}

void SmLogReader::line(std::string_view line) {
  auto message = messageOf(line);
  if (isComplaint(line) && sweep_complaints_.size() < kMaxComplaints)
    sweep_complaints_.emplace_back(message);
  if (has(message, "num:128 ")) {
    log_.traps += has(message, "log_trap_info");
  } else if (has(message, "Entering ") && has(message, " state")) {
    log_.master = has(message, "Entering MASTER state");
    log_.standby = has(message, "Entering STANDBY state");
    log_.subnet_up = false;
  } else if (has(message, "PARSE ERROR") || has(message, "Partition configuration in error")) {
    sweep_refused_partitions_ = true;
  } else if (has(message, " tables configured on all switches")) {
    log_.routing_engine = engineOf(message);
  } else if (has(message, "Errors during initialization") || has(message, "ERR 0D01")) {
    log_.subnet_up = false;
  } else if (message.starts_with("SUBNET UP")) {
    log_.subnet_up = log_.master =
        true;  // only a master says so; where it became one the log may not tell any more
    log_.standby = false;
    ++log_.sweeps;
    log_.partitions_refused = sweep_refused_partitions_;
    log_.complaints = std::move(sweep_complaints_);
    sweep_complaints_.clear();
    sweep_refused_partitions_ = false;
  }
}

SmLog SmLogReader::state() const {
  auto log = log_;
  log.partitions_refused |= sweep_refused_partitions_;
  for (const auto& complaint : sweep_complaints_)
    if (log.complaints.size() < kMaxComplaints) log.complaints.push_back(complaint);
  return log;
}

SmLog readSmLog(std::string_view text) {
  SmLogReader reader;
  reader.feed(text);
  reader.feed("\n");
  return reader.state();
}

}  // namespace muster::fabric
