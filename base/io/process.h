// SPDX-License-Identifier: Apache-2.0
// Seam: other programs (Boost.Process behind it).
#pragma once

#include "base/async/task.h"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::io {

struct Command {
  std::string
      program;  ///< found by PATH when it has no slash (sbin folders are always searched too)
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< added to the inherited environment
  std::string stdin_text;
  std::filesystem::path working_dir;
  std::chrono::seconds timeout{60};
  std::size_t max_output_bytes = 64u << 20;

  std::string str() const;  ///< for messages
};

struct ProcessExit {
  int code = 0;  ///< exit status; 128 + signal when killed
  std::string out;
  std::string err;
};

/// A daemon that muster started and supervises. Destroying it terminates it.
class Child {
 public:
  virtual ~Child() = default;
  virtual pid_t pid() const = 0;
  virtual bool running() = 0;
  /// SIGTERM, then SIGKILL after `grace`. Reaps.
  virtual void terminate(std::chrono::milliseconds grace) = 0;
  virtual void signal(int number) = 0;
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  /// Runs to the end. A non-zero exit is a value, not an error. The child gets its own process
  /// group and dies with the timeout (Timeout) or with muster. Errors: NotFound (program), Timeout,
  /// Internal
  virtual Async<ProcessExit> run(Command command) = 0;
  /// Starts a daemon; output goes to `log_file` (appended). It dies with muster (PR_SET_PDEATHSIG).
  virtual Result<std::unique_ptr<Child>> start(Command command, std::filesystem::path log_file) = 0;
  /// Starts a daemon that outlives muster (new session). Answers its pid; record it in a PidFile.
  virtual Result<pid_t> startDetached(Command command, std::filesystem::path log_file) = 0;
};

std::unique_ptr<ProcessRunner> makeProcessRunner();

/// Lets this process open `wanted` descriptors, as far as the hard limit or its rights go: a
/// shell's soft limit is 1,024, and a fleet would be refused one by one. Answers what may be open
/// now.
std::size_t raiseDescriptorLimit(std::size_t wanted);

/// Runs to the end without coroutines, for tools and setup code.
Result<ProcessExit> runBlocking(const Command& command);
/// As runBlocking, but a non-zero exit is an error that quotes the end of stderr.
Result<std::string> runChecked(const Command& command);

/// A pid with the start time of its process, so that a recycled pid is never taken for ours.
struct PidFile {
  std::filesystem::path path;
  Result<void> write(pid_t pid) const;
  /// The pid when that very process still lives.
  std::optional<pid_t> alive() const;
  /// SIGTERM, wait, SIGKILL; removes the file. Nothing happens when it does not live.
  Result<void> terminate(std::chrono::milliseconds grace) const;
};

}  // namespace muster::io
