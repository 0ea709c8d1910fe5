// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/tasks.h"
#include "bmc/redfish/redfish_bmc.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

RedfishReply reply(int status, const char* body, io::Headers headers = {}) {
  return {status, std::move(headers), parseLenient(body)};
}

TEST(RedfishTasks, theIdIsFoundWhereverTheBmcPutsIt) {
  const char* task7 = "/redfish/v1/TaskService/Tasks/7";
  EXPECT_EQ(taskUriOf(reply(202, "", {{"Location", task7}})), task7);
  EXPECT_EQ(taskUriOf(reply(202, "", {{"Location", std::string(task7) + "/Monitor"}})), task7);
  EXPECT_EQ(taskUriOf(reply(202, "", {{"Location", std::string("https://bmc") + task7}})), task7);
  EXPECT_EQ(taskUriOf(reply(202, R"({"@odata.id":"/redfish/v1/TaskService/Tasks/7"})",
                            {{"Location", "/redfish/v1/TaskService/TaskMonitors/x"}})),
            task7);
  EXPECT_EQ(taskUriOf(reply(202, R"({"Id":"7"})")), task7);
  EXPECT_EQ(
      taskUriOf(reply(
          202,
          R"({"Accepted":{"@Message.ExtendedInfo":[{"MessageArgs":["/redfish/v1/TaskService/Tasks/7"]}]}})")),
      task7);
  EXPECT_EQ(
      taskUriOf(reply(202, R"({"Accepted":{"@Message.ExtendedInfo":[{"MessageArgs":["7"]}]}})")),
      task7);
  EXPECT_EQ(taskUriOf(reply(202, "")), "");
}

TEST(RedfishTasks, statesMapToRunningCompletedFailed) {
  auto state = [](const char* body) { return taskStatusOf(reply(200, body)).state; };
  for (const char* running : {"New", "Starting", "Running", "Pending", "Stopping", "Suspended"}) {
    EXPECT_EQ(state(fmt::format(R"({{"TaskState":"{}"}})", running).c_str()), TaskState::Running)
        << running;
  }
  for (const char* failed :
       {"Exception", "Killed", "Cancelled", "Interrupted", "UserIntervention"}) {
    EXPECT_EQ(state(fmt::format(R"({{"TaskState":"{}","TaskStatus":"OK"}})", failed).c_str()),
              TaskState::Failed)
        << failed;
  }
  EXPECT_EQ(state(R"({"TaskState":"Completed","TaskStatus":"OK"})"), TaskState::Completed);
  EXPECT_EQ(state(R"({"TaskState":"Completed","TaskStatus":"Critical"})"), TaskState::Failed);
  EXPECT_EQ(taskStatusOf(reply(202, "")).state, TaskState::Running);  // a task monitor
  EXPECT_EQ(taskStatusOf(reply(204, "")).state, TaskState::Completed);
  EXPECT_DOUBLE_EQ(
      taskStatusOf(reply(200, R"({"TaskState":"Running","PercentComplete":"40"})")).fraction, 0.4);
  EXPECT_EQ(
      taskStatusOf(reply(200, R"({"TaskState":"Running","Messages":[{"Message":"erasing"}]})"))
          .message,
      "erasing");
}

}  // namespace
}  // namespace muster::bmc
