// SPDX-License-Identifier: Apache-2.0
// A machine for checks: files below a folder, and programs that say what they are told to.
#pragma once

#include "validate/checks/check_row.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace muster::validate {

class FakeHost : public testing::Test {
 protected:
  FakeHost() {
    host_.root = std::filesystem::temp_directory_path() /
                 fmt::format("muster-host-{}-{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(host_.root);
    host_.run = [this](const io::Command& command) -> Result<io::ProcessExit> {
      ran_.push_back(command);
      const auto key = command.program + (command.args.empty() ? "" : " " + command.args.front());
      for (const auto& name : {key, command.program})
        if (const auto found = outputs_.find(name); found != outputs_.end()) return found->second;
      return fail(ErrorCode::NotFound, "no " + command.program);
    };
  }
  ~FakeHost() override { std::filesystem::remove_all(host_.root); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((host_.root / file).parent_path());
    std::ofstream(host_.root / file) << text << "\n";
  }
  Verdict check(std::string_view id, nlohmann::json params = nlohmann::json::object()) {
    return runCheck(*findCheck(id), params, host_);
  }

  Host host_;
  std::map<std::string, io::ProcessExit> outputs_;  ///< by program, or program and first argument
  std::vector<io::Command> ran_;
};

}  // namespace muster::validate
