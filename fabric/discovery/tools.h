// SPDX-License-Identifier: Apache-2.0
// The InfiniBand tools, one at a time: ibsim has ten places for clients, and a tool that is killed
// keeps its own.
#pragma once

#include "base/async/task.h"
#include "base/io/process.h"
#include "fabric/opensm/partitions.h"
#include "fabric/options.h"
#include "fabric/packet_paths/forwarding.h"
#include "wire/links/counter_text.h"

#include <boost/asio/steady_timer.hpp>

#include <deque>

namespace muster::fabric {

struct ReportedFirmware;
struct Topology;

/// Lets one coroutine in at a time; the others wait in order.
class AsyncSemaphore {
 public:
  class Pass {
   public:
    explicit Pass(AsyncSemaphore& gate) : gate_(&gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_) gate_->leave();
    }

   private:
    AsyncSemaphore* gate_;
  };
  Task<Pass> enter();

 private:
  void leave();
  bool busy_ = false;
  std::deque<std::shared_ptr<asio::steady_timer>> waiting_;
};

struct SmInfo {
  std::string guid;  ///< port GUID of the master, "0x…16 digits"
  int lid = 0;
  bool master = false;
  bool standby = false;
};
/// "sminfo: sm lid 1 sm guid 0x100001, activity count 12 priority 14 state 3 SMINFO_MASTER".
/// Errors: Corrupt
Result<SmInfo> parseSmInfo(std::string_view text);
/// LIDs in the first part of `saquery -s`. Errors: Corrupt
Result<std::set<int>> parseManagers(std::string_view text);
/// Output of `smpquery pkeys`. Errors: Corrupt
Result<PkeyTable> parsePkeys(std::string_view text);
/// A port that has a PKey table.
using PkeyPort = std::pair<int, int>;  ///< LID and number
/// Output of muster-pkeys for these ports. Errors: Corrupt (one of them is not there)
Result<std::map<PkeyPort, PkeyTable>> parsePkeyTables(std::string_view text,
                                                      const std::vector<PkeyPort>& asked);
/// Output of muster-switchfw for these LIDs. Errors: Corrupt (one of them is not there, or its
/// version is none)
Result<std::map<int, ReportedFirmware>> parseSwitchFirmware(std::string_view text,
                                                            const std::vector<int>& asked);
/// Node GUIDs in OpenSM's dump opensm-subnet.lst.
std::set<std::string> guidsInSubnetList(std::string_view text);
/// Port GUIDs that ibnetdiscover met more than once, by its stderr.
std::vector<std::string> sharedGuids(std::string_view stderr_text);
/// What the tools said on stderr, less what is harmless. Empty: nothing went wrong.
std::string troubleIn(std::string_view stderr_text);
/// "0x100001" → "0x0000000000100001"
std::string canonicalGuid(std::string_view text);

class Tools {
 public:
  Tools(io::ProcessRunner& processes, const FabricOptions& options)
      : processes_(processes), options_(options) {}
  /// By muster-ibnetdisc where it may open a port, else by ibnetdiscover.
  /// Errors: Unavailable when anything timed out: what could not be asked is not known to be absent
  Async<Topology> discover();
  /// Errors: Unavailable (see discover), Denied (no port may be opened, or the program is not
  /// there)
  Async<Topology> discoverByLibrary();
  Async<Topology> discoverByTool();
  /// Errors: Unavailable (no subnet manager answers)
  Async<SmInfo> smInfo();
  /// Of the subnet manager at a port, master or not.
  Async<SmInfo> smInfoOf(int lid);
  Async<PkeyTable> pkeys(int lid, int port);
  /// The tables of all these ports, or an error: one that did not answer is not known to be right.
  Async<std::map<PkeyPort, PkeyTable>> pkeyTables(std::vector<PkeyPort> ports);
  /// What switches at these LIDs tell of their firmware; one that tells nothing has no version.
  /// Errors: Denied (no port may be opened, or muster-switchfw is not there), Unavailable
  Async<std::map<int, ReportedFirmware>> switchFirmware(std::vector<int> lids);
  /// LIDs of all ports that say they are a subnet manager: by the master's own list, which keeps
  /// ports of other partitions from whoever is a limited member, and by what the ports themselves
  /// told the last discovery.
  Async<std::set<int>> managerLids();
  Async<ForwardingTables> forwardingTables();
  /// Of every port of every device. Errors: Unavailable (a port did not answer)
  Async<links::ReadingsByGuid> counters();
  io::Command command(std::string tool, std::vector<std::string> args) const;
  /// The twin's: many devices on one machine, with many an OpenSM.
  bool areSimulated() const { return !options_.tool_prefix.empty(); }

 private:
  /// `accepted`: a second exit code that is an answer.
  Async<io::ProcessExit> answer(std::string tool, std::vector<std::string> args, int accepted = 0);
  Async<io::ProcessExit> answerOf(std::string tool, io::Command call, int accepted);
  Async<std::string> output(std::string tool, std::vector<std::string> args);
  io::ProcessRunner& processes_;
  const FabricOptions& options_;
  std::set<int> managers_told_;  // LIDs; of the last discovery by the library
};

}  // namespace muster::fabric
