// SPDX-License-Identifier: Apache-2.0
#include "tests/end_to_end/muster_process.h"
#include "tests/paths.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster::test {
namespace {

/// Starts build/bin/muster with its output in a pipe. Answers pid and the reading end.
std::pair<pid_t, int> spawn(const std::vector<std::string>& args, bool with_stderr) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, -1};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    if (with_stderr) dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    const std::string program = (test::binFolder() / "muster").string();
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (const auto& arg : args) words.push_back(const_cast<char*>(arg.c_str()));
    words.push_back(nullptr);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

int reap(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Finished runMuster(const std::vector<std::string>& args) {
  const auto [pid, out] = spawn(args, true);
  Finished finished;
  char piece[4096];
  for (ssize_t got; (got = read(out, piece, sizeof piece)) > 0;)
    finished.out.append(piece, static_cast<std::size_t>(got));
  close(out);
  finished.code = reap(pid);
  return finished;
}

WatchedApply::WatchedApply(std::vector<std::string> args) {
  args.insert(args.begin(), {"--json", "apply"});
  std::tie(pid_, out_) = spawn(args, false);
}

WatchedApply::~WatchedApply() {
  if (pid_ > 0) kill();
  if (out_ >= 0) close(out_);
}

bool WatchedApply::nextLine(std::string& line) {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    char piece[4096];
    const auto got = read(out_, piece, sizeof piece);
    if (got <= 0) return false;
    buffer_.append(piece, static_cast<std::size_t>(got));
  }
}

bool WatchedApply::until(const std::function<bool(const nlohmann::json&)>& fits) {
  for (std::string line; nextLine(line);) {
    auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    events_.push_back(event);
    if (fits(event)) return true;
  }
  return false;
}

void WatchedApply::kill() {
  ::kill(pid_, SIGKILL);
  reap(pid_);
  pid_ = -1;
}

int WatchedApply::wait() {
  until([](const nlohmann::json&) { return false; });
  const int code = reap(pid_);
  pid_ = -1;
  return code;
}

}  // namespace muster::test
