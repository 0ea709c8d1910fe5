#include "fabric/opensm_log.h"

namespace muster::fabric {

namespace {

bool has(std::string_view line, std::string_view what) { return line.find(what) != std::string_view::npos; }

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

// Level 0x01 is OSM_LOG_ERROR. Traps of cables that went up and down are logged there too; the cabling check speaks of those.
bool isComplaint(std::string_view line) { return has(line, " ERR ") || (has(line, " 0x01 -> ") && !has(line, "log_trap_info")); }

}  // namespace

SmLog readSmLog(std::string_view text) {
  SmLog log;
  bool sweep_refused_partitions = false;  // of the sweep that has not ended yet
  std::vector<std::string> sweep_complaints;
  while (!text.empty()) {
    auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    auto message = messageOf(line);
    if (isComplaint(line) && sweep_complaints.size() < kMaxComplaints) sweep_complaints.emplace_back(message);
    if (has(message, "Entering ") && has(message, " state")) {
      log.master = has(message, "Entering MASTER state");
      log.standby = has(message, "Entering STANDBY state");
      log.subnet_up = false;
    } else if (has(message, "PARSE ERROR") || has(message, "Partition configuration in error")) {
      sweep_refused_partitions = true;
    } else if (has(message, " tables configured on all switches")) {
      log.routing_engine = engineOf(message);
    } else if (has(message, "Errors during initialization") || has(message, "ERR 0D01")) {
      log.subnet_up = false;
    } else if (message.starts_with("SUBNET UP")) {
      log.subnet_up = true;
      ++log.sweeps;
      log.partitions_refused = sweep_refused_partitions;
      log.complaints = std::move(sweep_complaints);
      sweep_complaints.clear();
      sweep_refused_partitions = false;
    }
  }
  log.partitions_refused |= sweep_refused_partitions;
  for (auto& complaint : sweep_complaints)
    if (log.complaints.size() < kMaxComplaints) log.complaints.push_back(std::move(complaint));
  return log;
}

}  // namespace muster::fabric
