// SPDX-License-Identifier: Apache-2.0
// After a task that writes files, their labels are restored where a policy is loaded.
#include "agent/tasks/selinux_labels.h"

#include "tests/agent/tasks/tasks_fixture.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

class SelinuxLabels : public TasksTest {
 protected:
  Result<nlohmann::json> leave() {
    auto handlers = makeHandlers(wire::Mode::Disk, tools);
    return run(handlers[wire::TaskKind::LeavePool](nlohmann::json::object(), task()));
  }
};

TEST_F(SelinuxLabels, areRestoredAfterATaskWhatEverBecameOfIt) {
  put("sys/fs/selinux/enforce", "1");
  put("etc/hosts", "");
  put("usr/lib/muster/muster-agent", "");
  const auto expected =
      "restorecon -R " + (root / "etc").string() + " " + (root / "usr/lib/muster").string();
  programs.fails("systemctl", 1, "no");
  programs.on("restorecon", "");
  const auto left = leave();
  EXPECT_EQ(programs.count("restorecon"), 1u);
  EXPECT_EQ(test::ScriptedPrograms::wordsOf(programs.commands().back()), expected)
      << "at the end, and of what is there";
  programs.fails("restorecon", 255, "no policy");
  const auto again = leave();
  EXPECT_EQ(left.has_value(), again.has_value()) << "the task's own outcome counts";
}

TEST_F(SelinuxLabels, areNobodysConcernWithoutAPolicy) {
  put("etc/hosts", "");
  (void)leave();
  EXPECT_EQ(programs.count("restorecon"), 0u);
}

TEST_F(SelinuxLabels, ofTasksThatWriteNothingAreLeftAlone) {
  put("sys/fs/selinux/enforce", "1");
  programs.on("restorecon", "");
  auto handlers = makeHandlers(wire::Mode::Disk, tools);
  ASSERT_TRUE(run(
      handlers[wire::TaskKind::Probe]({{"probes", nlohmann::json::array({"kernel"})}}, task())));
  EXPECT_EQ(programs.count("restorecon"), 0u);
}

}  // namespace
}  // namespace muster::agent
