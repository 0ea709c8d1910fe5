// ibsim: a fabric without hardware, in a process of its own. Tools and OpenSM reach it by a socket that only its name leads to.
#pragma once

#include "fabric/fabric.h"

namespace muster::fabric {

class Simulator {
 public:
  /// Starts ibsim in `folder` (made, files of an earlier one replaced) and waits until it serves.
  /// Errors: NotFound (ibsim is not installed), Unavailable (it refused the fabric: its words)
  static Async<std::unique_ptr<Simulator>> start(const Topology& topology, io::ProcessRunner& processes, Clock& clock,
                                                 std::filesystem::path folder);

  /// One console command; returns when ibsim has carried it out.
  Async<void> say(std::string line);
  Async<void> unlink(Port port) { return say("Unlink " + quoted(port)); }
  Async<void> link(Port one, Port other) { return say(fmt::format("Link {} {}", quoted(one), quoted(other))); }
  /// What a repair says: all ends out first, then in.
  Async<void> carryOut(std::vector<Repair> repairs);

  /// Options of tools that sit on this device: its run folder is below the simulator's.
  FabricOptions seat(std::string_view device) const;

 private:
  Simulator(Clock& clock, std::filesystem::path folder, std::string socket)
      : clock_(clock), folder_(std::move(folder)), socket_(std::move(socket)) {}
  static std::string quoted(const Port& port) { return fmt::format("\"{}\"[{}]", ibsimNodeId(port.node), port.number); }
  std::filesystem::path log() const { return folder_ / "ibsim.log"; }
  std::size_t prompts() const;
  Async<void> untilPrompts(std::size_t more_than, std::string what);

  Clock& clock_;
  std::filesystem::path folder_;
  std::string socket_;
  std::unique_ptr<io::Child> process_;
};

/// ibsim 0.10 knows speeds up to HDR; faster links become HDR. Answers whether any was.
bool slowDownForIbsim(Topology& topology);

}  // namespace muster::fabric
