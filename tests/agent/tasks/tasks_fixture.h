// SPDX-License-Identifier: Apache-2.0
// The handlers' tools over a root folder of the test's own and programs in memory.
#pragma once

#include "agent/tasks/tasks.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::agent {

namespace fs = std::filesystem;

class TasksTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    ASSERT_TRUE(io::makeDirs((root / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(root / path, content));
  }
  std::string read(const std::string& path) {
    auto text = io::readFile(root / path);
    return text ? *text : "unreadable: " + text.error().str();
  }
  Result<nlohmann::json> run(Async<nlohmann::json> work) {
    return test::runAsync(context, std::move(work));
  }
  TaskContextPtr task() { return std::make_shared<TaskContext>("t", std::chrono::seconds(60)); }

  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
};

}  // namespace muster::agent
