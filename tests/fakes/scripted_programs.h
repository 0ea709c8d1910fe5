// SPDX-License-Identifier: Apache-2.0
// ScriptedPrograms: programs in memory. A test says what each command answers; every command is
// kept.
//
//   ScriptedPrograms programs;
//   programs.on("dpkg-query", [](const io::Command& c) { return ProcessExit{0, "installed 1.2",
//   ""}; }); programs.on("systemctl is-active slurmd", "active\n");     // the longest prefix of
//   the command's words wins
#pragma once

#include "base/io/process.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::test {

class ScriptedPrograms final : public io::ProcessRunner {
 public:
  using Answer = std::function<Result<io::ProcessExit>(const io::Command&)>;

  void on(std::string prefix, Answer answer) { answers_[std::move(prefix)] = std::move(answer); }
  void on(std::string prefix, std::string out) {
    on(std::move(prefix), [out](const io::Command&) -> Result<io::ProcessExit> {
      return io::ProcessExit{0, out, {}};
    });
  }
  void fails(std::string prefix, int code, std::string err) {
    on(std::move(prefix), [code, err](const io::Command&) -> Result<io::ProcessExit> {
      return io::ProcessExit{code, {}, err};
    });
  }

  const std::vector<io::Command>& commands() const { return commands_; }
  /// How many of the commands so far begin with these words.
  std::size_t count(const std::string& prefix) const {
    std::size_t found = 0;
    for (const auto& command : commands_) found += wordsOf(command).starts_with(prefix) ? 1 : 0;
    return found;
  }
  void clear() { commands_.clear(); }

  static std::string wordsOf(const io::Command& command) {
    std::string words = command.program;
    for (const auto& arg : command.args) words += " " + arg;
    return words;
  }

  Async<io::ProcessExit> run(io::Command command) override { co_return answer(command); }

  Result<std::unique_ptr<io::Child>> start(io::Command command, std::filesystem::path) override {
    auto exit = answer(command);
    if (!exit) return fail(exit.error());
    return std::make_unique<FakeChild>();
  }
  Result<pid_t> startDetached(io::Command command, std::filesystem::path) override {
    auto exit = answer(command);
    if (!exit) return fail(exit.error());
    return pid_t{4242};
  }

 private:
  struct FakeChild final : io::Child {
    pid_t pid() const override { return 4242; }
    bool running() override { return alive; }
    void terminate(std::chrono::milliseconds) override { alive = false; }
    void signal(int) override {}
    bool alive = true;
  };

  Result<io::ProcessExit> answer(const io::Command& command) {
    commands_.push_back(command);
    std::string words = wordsOf(command);
    const Answer* best = nullptr;
    std::size_t longest = 0;
    for (const auto& [prefix, each] : answers_) {
      if (!words.starts_with(prefix) || prefix.size() < longest) continue;
      best = &each;
      longest = prefix.size();
    }
    if (!best) return fail(ErrorCode::NotFound, "the fake knows no program for: " + words);
    return (*best)(command);
  }

  std::map<std::string, Answer> answers_;
  std::vector<io::Command> commands_;
};

}  // namespace muster::test
