// SPDX-License-Identifier: Apache-2.0
// The small parts: lenient JSON, quirks, task ids and states, the upload's body, turnstiles.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "bmc/arbiter.h"
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/redfish_bmc.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(JsonView, takesNumbersAsStringsAndSurvivesEveryWrongShape) {
  const Json json = parseLenient(
      R"({"a":"25.687000","b":7,"c":null,"d":{"@odata.id":"/x"},"e":"/y","f":[{"@odata.id":"/1"},null,5,"/2"],"g":"many"})");
  EXPECT_EQ(numberAt(json, "a"), 25.687);
  EXPECT_EQ(textAt(json, "b"), "7");
  EXPECT_EQ(textAt(json, "c"), "");
  EXPECT_EQ(linkAt(json, "d"), "/x");
  EXPECT_EQ(linkAt(json, "e"), "/y");
  EXPECT_EQ(numberAt(json, "g"), std::nullopt);
  EXPECT_EQ(textAt(json, "a/b/c"), "");
  EXPECT_EQ(linksAt(json, "b"), std::vector<std::string>());
  EXPECT_THAT(linksAt(json, "f"), testing::ElementsAre("/1", "/2"));
  EXPECT_TRUE(parseLenient("<html>").is_null());
}

TEST(Quirks, everyRowNamesItsSource) {
  for (const QuirkRow& row : quirkRows()) EXPECT_GT(row.source.size(), 20u) << row.vendor;
}

TEST(Quirks, narrowerRowsWinAndStrangersGetTheDefaults) {
  EXPECT_TRUE(quirksOf({"Supermicro", "Supermicro", "SYS-821GE-TNHR", "11"}).boot_mode);
  EXPECT_FALSE(quirksOf({"Supermicro", "Supermicro", "SYS-X10DRT", "3"}).boot_mode);
  EXPECT_FALSE(quirksOf({"Dell", "Dell Inc.", "PowerEdge R750", "6"}).keeps_finished_tasks);
  EXPECT_TRUE(quirksOf({"AMI", "NVIDIA", "DGXH100", "23.11.20"}).boot_override_on_settings);
  EXPECT_TRUE(quirksOf({"Nobody", "Nobody", "", ""}).send_targets);
}

TEST(SerialConsoles, areReadWayByWayOrFromTheManagersList) {
  const auto smash = serialConsoleOf(parseLenient(
      R"({"IPMI":{"Port":623,"ServiceEnabled":true},"SSH":{"ServiceEnabled":true,"Port":"2200","ConsoleEntryCommand":"start sol","SharedWithManagerCLI":true}})"));
  EXPECT_TRUE(smash.ssh && smash.ipmi);
  EXPECT_EQ(smash.ssh_port, 2200);
  EXPECT_EQ(smash.ssh_command, "start sol");
  const auto own = serialConsoleOf(parseLenient(R"({"SSH":{"ServiceEnabled":true,"Port":2200}})"));
  EXPECT_EQ(own.ssh_command, "") << "a server of its own is the console";
  const auto shared = serialConsoleOf(parseLenient(
      R"({"SSH":{"ServiceEnabled":true,"Port":0,"SharedWithManagerCLI":true,"ConsoleEntryCommand":null}})"));
  EXPECT_EQ(shared.ssh_command, std::nullopt) << "how the command line goes on is not known";
  EXPECT_EQ(shared.ssh_port, std::nullopt) << "no port";
  EXPECT_FALSE(serialConsoleOf(parseLenient(R"({"SSH":{"ServiceEnabled":false,"Port":22}})")).ssh);
  const auto listed = listedSerialConsoleOf(
      parseLenient(R"({"ServiceEnabled":true,"ConnectTypesSupported":["SSH","IPMI","Oem"]})"));
  EXPECT_TRUE(listed.ssh && listed.ipmi);
  EXPECT_EQ(listed.ssh_command, std::nullopt);
  EXPECT_FALSE(listedSerialConsoleOf(
                   parseLenient(R"({"ServiceEnabled":false,"ConnectTypesSupported":["SSH"]})"))
                   .ssh);
  EXPECT_FALSE(listedSerialConsoleOf(
                   parseLenient(R"({"ServiceEnabled":true,"ConnectTypesSupported":"SSH"})"))
                   .ssh);
}

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

TEST(Multipart, hashesTheBytesThatAreSentAndNamesTheFileWithoutItsPath) {
  test::TempFolder folder;
  const auto file = folder / "bmc-1.fw";
  ASSERT_TRUE(io::writeFileAtomic(file, "payload"));
  auto image = readFirmwareImage({"BMC", file, io::sha256Hex("payload")});
  ASSERT_TRUE(image);
  auto body = multipartUpdate(*image, "bmc-1.fw", Json{{"Targets", Json::array({"/t"})}});
  EXPECT_THAT(body.begin, HasSubstr("filename=\"bmc-1.fw\"\r\n"));
  EXPECT_THAT(body.begin + *body.image + body.end, HasSubstr("\r\n\r\npayload\r\n--"));
  EXPECT_THAT(body.begin, HasSubstr(R"({"Targets":["/t"]})"));
  EXPECT_EQ(body.bytes(), body.begin.size() + 7 + body.end.size());

  auto wrong = readFirmwareImage({"BMC", file, io::sha256Hex("other")});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(readFirmwareImage({"BMC", folder / "none", ""}).error().code(), ErrorCode::NotFound);
  ASSERT_TRUE(io::writeFileAtomic(file, ""));
  EXPECT_EQ(readFirmwareImage({"BMC", file, io::sha256Hex("")}).error().code(),
            ErrorCode::InvalidInput);
}

TEST(FirmwareImages, isInMemoryOnceForAsLongAsSomebodySendsIt) {
  test::TempFolder folder;
  const auto file = folder / "bmc-1.fw";
  ASSERT_TRUE(io::writeFileAtomic(file, "payload"));
  Workers workers(1);
  FirmwareImages images(workers);
  const FirmwareUpdate update{"BMC", file, io::sha256Hex("payload")};
  auto first = test::runAsync(images.get(update)), second = test::runAsync(images.get(update));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  ASSERT_TRUE(io::writeFileAtomic(file, "changed"));
  EXPECT_TRUE(test::runAsync(images.get(update)));  // what is being sent is still what was declared
  *first = *second = nullptr;
  EXPECT_EQ(test::runAsync(images.get(update)).error().code(), ErrorCode::Corrupt);
}

/// A driver that counts who is inside.
class CountingBmc final : public Bmc {
 public:
  explicit CountingBmc(Clock& clock) : clock_(clock) {}
  std::string address() const override { return "counting"; }
  Async<SystemInfo> system() override {
    co_await inside(readers, most_readers);
    co_return SystemInfo();
  }
  Async<void> power(PowerAction) override {
    co_await inside(writers, most_writers);
    co_return Result<void>();
  }
  Async<void> resetBmc() override {
    met_others = met_others || readers > 0 || writers > 0;
    co_await inside(writers, most_writers);
    met_others = met_others || readers > 0;
    co_return Result<void>();
  }
  Async<void> bootOnce(BootTarget) override {  // never ends
    co_await clock_.sleep(24h);
    co_return Result<void>();
  }
  Async<std::vector<FirmwareItem>> firmware() override { co_return std::vector<FirmwareItem>(); }
  Async<std::string> startUpdate(FirmwareUpdate) override { co_return std::string(); }
  Async<TaskStatus> task(std::string) override { co_return TaskStatus(); }
  Async<TaskList> tasks() override { co_return TaskList(); }

  int readers = 0, writers = 0, most_readers = 0, most_writers = 0;
  bool met_others = false;

 private:
  Task<void> inside(int& now, int& most) {
    most = std::max(most, ++now);
    co_await clock_.sleep(1s);
    --now;
  }
  Clock& clock_;
};

Task<void> ignore(Async<void> op) { (void)co_await std::move(op); }
Task<void> ignore(Async<SystemInfo> op) { (void)co_await std::move(op); }

TEST(Arbiter, oneWriterFewReadersAndNobodyDuringAReset) {
  test::VirtualLoop loop;
  auto driver = std::make_unique<CountingBmc>(loop.clock);
  auto* counts = driver.get();
  auto bmc = arbitrate(std::move(driver), loop.clock);
  for (int i = 0; i < 8; ++i) {
    loop.spawn(ignore(bmc->system()));
    loop.spawn(ignore(bmc->power(PowerAction::On)));
    if (i == 3) loop.spawn(ignore(bmc->resetBmc()));
  }
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceOff)));
  ASSERT_TRUE(loop.run(bmc->resetBmc()));
  EXPECT_EQ(counts->most_writers, 1);
  EXPECT_EQ(counts->most_readers, static_cast<int>(kMaxConcurrentReads));
  EXPECT_FALSE(counts->met_others);
}

TEST(Arbiter, everyOperationHasADeadlineAndGivesItsPlaceBack) {
  test::VirtualLoop loop;
  auto bmc = arbitrate(std::make_unique<CountingBmc>(loop.clock), loop.clock);
  auto stuck = loop.run(bmc->bootOnce(BootTarget::Pxe));
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
}

TEST(Arbiter, whoIsCancelledWhileWaitingLeavesNoGap) {
  test::VirtualLoop loop;
  auto bmc = arbitrate(std::make_unique<CountingBmc>(loop.clock), loop.clock);
  loop.spawn(
      ignore(bmc->bootOnce(BootTarget::Pxe)));  // holds the write place for its whole deadline
  loop.settle();
  auto impatient = withDeadline<void>(loop.clock, 2s, "waiting", bmc->power(PowerAction::On));
  EXPECT_EQ(loop.run(std::move(impatient)).error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
}

}  // namespace
}  // namespace muster::bmc
