// SPDX-License-Identifier: Apache-2.0
// Boost.Process starts programs. There is no SIGCHLD handler and no wait for "any child", so
// children that other code started are never disturbed.
#include "base/io/spawn.h"

#include <fmt/format.h>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>
#include <boost/process/search_path.hpp>

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace muster::io {

namespace bp = boost::process;

namespace {

Result<std::string> findProgram(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (::access(program.c_str(), X_OK) == 0) return program;
    return fail(ErrorCode::NotFound, fmt::format("{} is not an executable file", program));
  }
  auto folders = boost::this_process::path();
  for (const char* folder :
       {"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"})
    folders.emplace_back(folder);
  const auto found = bp::search_path(program, folders);
  if (!found.empty()) return found.string();
  return fail(
      ErrorCode::NotFound,
      fmt::format("program {} is not installed (looked in PATH and the sbin folders)", program));
}

/// What the child does between fork and exec: its own process group (or session), default signals,
/// no stray descriptors.
struct ChildSetup : bp::extend::handler {
  Bond bond;
  pid_t parent = ::getpid();
  char**
      argv;  ///< ours: Boost 1.81 takes front() of every argument, which an empty one does not have
  const char* folder;  ///< nullptr: where this process is
  ChildSetup(Bond b, char** arguments, const char* in) : bond(b), argv(arguments), folder(in) {}

  template <class Executor>
  void on_setup(Executor& executor) const {
    executor.cmd_line = argv;
  }

  template <class Executor>
  void on_exec_setup(Executor& executor) const {
    if (bond == Bond::OutlivesMuster) {
      ::setsid();
    } else {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);  // muster ended before the line above
    }
    if (folder && ::chdir(folder) != 0) {
      executor.set_error(bp::detail::get_last_error(), "chdir");
      ::_exit(127);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
      executor.set_error(bp::detail::get_last_error(), "close_range");
  }
};

/// Where a command starts that asks for no folder; "": here. A root that has become the services'
/// user is still in root's home, which is shut to it: most programs end there before they begin.
std::string folderOf(const Command& command) {
  if (!command.working_dir.empty()) return command.working_dir.string();
  return ::access(".", X_OK) == 0 ? "" : "/";
}

int exitCode(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void ignoreBrokenPipes() {
  struct sigaction now{};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
}

Result<pid_t> spawn(const Command& command, Bond bond, int in, int out, int err) {
  TRY(program, findProgram(command.program));
  bp::environment environment = boost::this_process::environment();
  for (const auto& [name, value] : command.env) environment[name] = value;
  const auto folder = folderOf(command);
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot start {}: {} is not a folder", command.str(), folder));
  }
  error.clear();
  std::vector<std::string> words{program};
  words.insert(words.end(), command.args.begin(), command.args.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  try {
    bp::child child(bp::exe = program, environment, bp::posix::fd.bind(0, in),
                    bp::posix::fd.bind(1, out), bp::posix::fd.bind(2, err),
                    ChildSetup(bond, argv.data(), folder.empty() ? nullptr : folder.c_str()),
                    error);
    if (!error) {
      child.detach();
      return child.id();
    }
  } catch (const std::exception& e) {
    return fail(ErrorCode::Internal, fmt::format("cannot start {}: {}", command.str(), e.what()));
  }
  const auto code = error.value() == ENOENT ? ErrorCode::NotFound : ErrorCode::Internal;
  return fail(code, fmt::format("cannot start {}: {}", command.str(), error.message()));
}

std::optional<int> reap(pid_t pid, int flags) {
  int status = 0;
  for (;;) {
    const auto got = ::waitpid(pid, &status, flags);
    if (got == pid) return exitCode(status);
    if (got == 0) return std::nullopt;
    if (errno != EINTR) return 255;
  }
}

}  // namespace muster::io
