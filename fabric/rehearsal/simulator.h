// SPDX-License-Identifier: Apache-2.0
// ibsim: a fabric without hardware, in a process of its own. Tools and OpenSM reach it by a socket
// that only its name leads to.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/process.h"
#include "fabric/compare/compare.h"
#include "fabric/options.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

namespace muster::fabric {

class Simulator {
 public:
  /// Starts ibsim in `folder` (made, files of an earlier one replaced) and waits until it serves.
  /// Errors: NotFound (ibsim is not installed), Unavailable (it refused the fabric: its words)
  static Async<std::unique_ptr<Simulator>> start(const Topology& topology,
                                                 io::ProcessRunner& processes, Clock& clock,
                                                 std::filesystem::path folder);

  /// Console commands, one a line; returns when ibsim has carried them all out. All at once they
  /// are one event to OpenSM; one by one each trap makes its sweep begin anew.
  Async<void> say(std::string lines);
  Async<void> unlink(Port port) { return say(unlinkLine(port)); }
  Async<void> link(Port one, Port other) { return say(linkLine(one, other)); }
  static std::string unlinkLine(const Port& port) {
    return fmt::format("Unlink {}\n", quoted(port));
  }
  static std::string linkLine(const Port& one, const Port& other) {
    return fmt::format("Link {} {}\n", quoted(one), quoted(other));
  }
  /// What a repair says: all ends out first, then in.
  Async<void> carryOut(std::vector<Repair> repairs) { return say(linesOf(repairs)); }
  static std::string linesOf(const std::vector<Repair>& repairs);

  /// Options of tools that sit on this device: its run folder is below the simulator's.
  FabricOptions seat(std::string_view device) const;

 private:
  Simulator(Clock& clock, std::filesystem::path folder, std::string socket)
      : clock_(clock), folder_(std::move(folder)), socket_(std::move(socket)) {}
  static std::string quoted(const Port& port) {
    return fmt::format("\"{}\"[{}]", ibsimNodeId(port.node), port.number);
  }
  std::filesystem::path log() const { return folder_ / "ibsim.log"; }
  std::size_t prompts();
  Async<void> untilPrompts(std::size_t wanted, std::string what);

  Clock& clock_;
  std::filesystem::path folder_;
  std::string socket_;
  std::unique_ptr<io::Child> process_;
  std::uintmax_t log_read_ = 0;  // bytes of ibsim's log, and the prompts in them
  std::size_t prompts_ = 0;
};

/// ibsim 0.10 knows speeds up to HDR; faster links become HDR. Answers whether any was.
bool slowDownForIbsim(Topology& topology);

}  // namespace muster::fabric
