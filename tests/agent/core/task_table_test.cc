// SPDX-License-Identifier: Apache-2.0
// The table of tasks across restarts, and how an agent learns who it is.
#include "agent/core/task_table.h"
#include "agent/core/options.h"
#include "base/io/files.h"
#include "tests/run_async.h"
#include "wire/controllers.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

wire::AgentTaskReport report(std::string id, wire::TaskPhase phase, std::string result = {}) {
  wire::AgentTaskReport each;
  each.id = std::move(id);
  each.phase = phase;
  each.result = std::move(result);
  return each;
}

class TaskTableTest : public ::testing::Test {
 protected:
  TaskTable open() {
    auto table = TaskTable::open(file);
    EXPECT_TRUE(table) << table.error().str();
    return std::move(*table);
  }
  test::TempFolder folder;
  std::filesystem::path file = folder / "state/tasks.json";
};

TEST_F(TaskTableTest, outcomesSurviveAndWhatHadNotEndedHasFailed) {
  {
    auto table = open();
    for (const char* id : {"done", "running", "queued"})
      ASSERT_TRUE(table.add({id, wire::TaskKind::InstallDriver, R"({"secret":"hunter2"})"}));
    table.update(report("done", wire::TaskPhase::Done, R"({"x":1})"));
    table.update(report("running", wire::TaskPhase::Running));
  }
  auto text = *io::readFile(file);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("hunter2")));
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  auto table = open();
  EXPECT_EQ(table.find("done")->report.result, R"({"x":1})");
  EXPECT_EQ(table.find("done")->kind, wire::TaskKind::InstallDriver);
  EXPECT_EQ(table.find("running")->report.phase, wire::TaskPhase::Failed);
  EXPECT_THAT(table.find("running")->report.text, HasSubstr("restarted while the task ran"));
  EXPECT_THAT(table.find("queued")->report.text, HasSubstr("before the task began"));
  EXPECT_EQ(table.add({"done", wire::TaskKind::Probe, "{}"}).error().code(), ErrorCode::Conflict);
}

TEST_F(TaskTableTest, onlyTheNewestClaimOfALedgerPassesAlsoAfterARestart) {
  {
    auto table = open();
    EXPECT_TRUE(table.pass({"ledger", 7}));
    ASSERT_TRUE(table.add({"a", wire::TaskKind::Probe, "{}"}));
  }
  auto table = open();
  EXPECT_EQ(table.pass({"ledger", 6}).error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(table.pass({"ledger", 7})) << "the same claim goes on";
  EXPECT_TRUE(table.pass({"ledger", 8}));
  EXPECT_FALSE(table.pass({"ledger", 7}));
  EXPECT_TRUE(table.pass({})) << "a pair's partner is not claimed";
  EXPECT_FALSE(table.pass({"ledger", 7})) << "and that opens nothing";
  EXPECT_TRUE(table.pass({"store made anew", 1})) << "its numbers start again";
}

TEST_F(TaskTableTest, forgottenIdsAreStillKnown) {
  {
    auto table = open();
    ASSERT_TRUE(table.add({"a", wire::TaskKind::Probe, "{}"}));
    table.forget({"a"});
    EXPECT_FALSE(table.hasForgotten("a")) << "a task that has not ended is not forgotten";
    table.update(report("a", wire::TaskPhase::Done, "{}"));
    table.forget({"a", "never heard of"});
  }
  auto table = open();
  EXPECT_TRUE(table.hasForgotten("a"));
  EXPECT_FALSE(table.hasForgotten("never heard of"));
  EXPECT_FALSE(table.find("a"));
}

TEST_F(TaskTableTest, isBounded) {
  auto table = open();
  for (std::size_t i = 0; i < wire::kMaxTasks; ++i)
    ASSERT_TRUE(table.add({"t" + std::to_string(i), wire::TaskKind::Probe, "{}"}));
  EXPECT_FALSE(table.add({"one more", wire::TaskKind::Probe, "{}"}));
  table.update(report("t5", wire::TaskPhase::Done, "{}"));
  EXPECT_TRUE(table.add({"one more", wire::TaskKind::Probe, "{}"}));
  EXPECT_TRUE(table.hasForgotten("t5"));
  EXPECT_EQ(table.entries().size(), wire::kMaxTasks);
}

TEST_F(TaskTableTest, brokenFileIsMovedAside) {
  for (
      const char* broken :
      {"", "{", "{}",
       R"({"format":"muster-tasks/1","kinds":["probe"],"reports":[],"forgotten":[],"watched":[]})"}) {
    ASSERT_TRUE(io::makeDirs(file.parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(file, broken));
    auto table = open();
    EXPECT_TRUE(table.entries().empty());
    EXPECT_EQ(*io::readFile(file.string() + ".corrupt"), broken);
  }
}

TEST(AgentOptions, kernelCommandLine) {
  std::string pin(64, 'A');
  auto options =
      optionsFromKernel("BOOT_IMAGE=/vmlinuz muster.url=https://10.20.0.1:8443 muster.ca=" + pin +
                        " muster.enrolment=abc muster.node=gpu001 muster.mac=52-54-00-00-00-01 "
                        "console=ttyS0 quiet\n");
  ASSERT_TRUE(options) << options.error().str();
  EXPECT_EQ(options->mode, wire::Mode::Ram);
  EXPECT_EQ(options->url.port, 8443);
  EXPECT_EQ(options->mac, "52:54:00:00:00:01");
  EXPECT_EQ(options->ca_fingerprint, std::string(64, 'a'));
  EXPECT_EQ(options->enrollment, "abc");
  EXPECT_EQ(options->node, "gpu001");
  EXPECT_EQ(options->image_digest, "");
  EXPECT_EQ(optionsFromKernel("muster.url=https://a:1 muster.ca=" + pin +
                              " muster.enrolment=t muster.mac=52:54:00:00:00:01 muster.image=d1")
                ->image_digest,
            "d1")
      << "a live image's kernel";

  auto why = [](const std::string& line) { return optionsFromKernel(line).error().str(); };
  EXPECT_THAT(why("quiet"), HasSubstr("lacks muster.url"));
  EXPECT_THAT(why("muster.url=https://a:1 muster.ca=" + pin + " muster.mac=52:54:00:00:00:01"),
              HasSubstr("lacks muster.enrolment"));
  EXPECT_THAT(why("muster.url=http://a:1 muster.ca=" + pin +
                  " muster.enrolment=t muster.mac=52:54:00:00:00:01"),
              HasSubstr("must be https"));
  EXPECT_THAT(
      why("muster.url=https://a:1 muster.ca=ab muster.enrolment=t muster.mac=52:54:00:00:00:01"),
      HasSubstr("fingerprint"));
}

TEST(AgentOptions, severalControllers) {
  const std::string rest =
      " muster.ca=" + std::string(64, 'a') + " muster.enrolment=t muster.mac=52:54:00:00:00:01";
  auto options =
      optionsFromKernel("muster.url=https://10.20.0.2:8443,https://10.20.0.1:9443" + rest);
  ASSERT_TRUE(options) << options.error().str();
  EXPECT_EQ(options->url.host, "10.20.0.2");
  ASSERT_EQ(options->urls.size(), 2u);
  EXPECT_EQ(options->urls[1].origin(), "https://10.20.0.1:9443");
  options = optionsFromFile(
      R"({"url":"https://a:1,https://b:1","node":"n","ca_pem_file":"/a","key_file":"/b","certificate_file":"/c","image_digest":"d"})");
  ASSERT_TRUE(options) << options.error().str();
  EXPECT_EQ(options->urls.size(), 2u);

  auto why = [](const std::string& urls) { return wire::parseControllers(urls).error().str(); };
  EXPECT_THAT(why(""), HasSubstr("missing"));
  EXPECT_THAT(why("https://a:1,"), HasSubstr("missing"));
  EXPECT_THAT(why("https://a:1,,https://b:1"), HasSubstr("missing"));
  EXPECT_THAT(why("https://a:1,https://b:1,https://a:1"), HasSubstr("https://a:1 is named twice"));
  EXPECT_THAT(why("https://a:1,http://b:1"), HasSubstr("must be https"));
  EXPECT_FALSE(wire::parseControllers("https://a:1,nonsense"));
  EXPECT_TRUE(wire::parseControllers("https://a:1,https://a:2")) << "two on one host";
  std::string many = "https://a:1";
  for (int port = 2; port <= 9; ++port) many += fmt::format(",https://a:{}", port);
  EXPECT_THAT(why(many), HasSubstr("more than 8"));
  EXPECT_EQ(wire::toString(*wire::parseControllers("https://a:1,https://b:2")),
            "https://a:1,https://b:2");
}

TEST(AgentOptions, configurationFile) {
  auto options = optionsFromFile(
      R"({"url":"https://10.20.0.1:8443","node":"gpu001","ca_pem_file":"/a","key_file":"/b",
                                     "certificate_file":"/c","image_digest":"d"})");
  ASSERT_TRUE(options) << options.error().str();
  EXPECT_EQ(options->mode, wire::Mode::Disk);
  EXPECT_EQ(options->image_digest, "d");
  EXPECT_FALSE(optionsFromFile(R"({"url":"https://10.20.0.1:8443"})"));
  EXPECT_FALSE(optionsFromFile("not json"));
}

}  // namespace
}  // namespace muster::agent
