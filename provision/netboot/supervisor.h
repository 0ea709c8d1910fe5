// SPDX-License-Identifier: Apache-2.0
// Keeps one daemon running: restarts it with growing pauses, gives up when it dies again and again.
#pragma once

#include "base/io/process.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace muster::provision {

struct SupervisorOptions {
  std::string area;                             ///< for the log: "dnsmasq"
  std::chrono::milliseconds poll{500};          ///< how often it is looked at
  std::chrono::milliseconds first_pause{1000};  ///< doubled at every death in a row
  int max_deaths_in_row = 8;                    ///< pauses 1 s … 128 s, about 4 minutes in all
  std::chrono::seconds stable_after{600};       ///< after so long its earlier deaths are forgotten
};

/// The daemon: a child of this process, or of a unit (base/io/daemon_unit.h).
struct Daemon {
  std::function<Result<std::unique_ptr<io::Child>>()> start;
  std::string log;                 ///< where its words are, for people
  std::filesystem::path pid_file;  ///< of one that a killed controller of this host has left
  bool keeps_pid = true;           ///< false: it cannot outlive its controller
};
/// A child of this process, whose output goes to `log_file`.
Daemon childDaemon(io::ProcessRunner& processes, io::Command command,
                   std::filesystem::path log_file, std::filesystem::path pid_file);

class Supervisor {
 public:
  Supervisor(asio::any_io_executor executor, SupervisorOptions options);
  ~Supervisor();

  /// Ends what an earlier, killed controller left behind (`pid_file`), then starts the program.
  /// Errors: those of Daemon::start
  Result<void> start(Daemon daemon) { return adopt(nullptr, std::move(daemon)); }
  /// Goes on with a daemon that another supervisor has released; one that has died meanwhile is
  /// started anew.
  Result<void> adopt(std::unique_ptr<io::Child> child, Daemon daemon);
  /// Gives the daemon away as it runs, and does not watch it any more; null when there is none.
  std::unique_ptr<io::Child> release();
  void stop();
  /// To the daemon; nothing happens while there is none: a new one reads everything anyway.
  void signal(int number);
  /// Why the daemon is not kept running any more; nullopt while it is.
  std::optional<std::string> gaveUp() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace muster::provision
