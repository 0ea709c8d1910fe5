#include "agent/tasks/storage.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const WantedMount kWanted{"10.20.0.9:/export/home", "/home", "nfs nfs4", {"vers=4.2", "_netdev"}};
constexpr const char* kRight = "/dev/sda1 / ext4 rw 0 0\n10.20.0.9:/export/home /home nfs4 rw,vers=4.2,hard 0 0\n";

TEST(Mounts, theRightOneHasNoProblem) { EXPECT_EQ(mountProblem(parseMounts(kRight), kWanted), ""); }

TEST(Mounts, sourceTypeAndOptionsAreEachFound) {
  auto problem = [](std::string text) { return mountProblem(parseMounts(text), kWanted); };
  EXPECT_THAT(problem(""), HasSubstr("nothing is mounted at /home"));
  EXPECT_THAT(problem("10.20.0.8:/export/home /home nfs4 rw,vers=4.2 0 0\n"), HasSubstr("declared is 10.20.0.9:/export/home"));
  EXPECT_THAT(problem("10.20.0.9:/export/home /home fuse rw,vers=4.2 0 0\n"), HasSubstr("type fuse"));
  EXPECT_THAT(problem("10.20.0.9:/export/home /home nfs4 rw,vers=4.1 0 0\n"), HasSubstr("without vers=4.2"));
  EXPECT_THAT(problem(std::string(kRight) + "tmpfs /home tmpfs rw 0 0\n"), HasSubstr("tmpfs is mounted")) << "the last one is on top";
}

TEST(Mounts, escapesAreTurnedBackAndRubbishIsSkipped) {
  EXPECT_EQ(parseMounts("a\\040b /c\\011d x rw 0 0\n").at(0).source, "a b");
  EXPECT_TRUE(parseMounts("\n\nnonsense\n").empty());
}

TEST(SpeedTest, isMeasuredAndLeavesNothing) {
  test::TempFolder folder;
  const auto speed = measureSpeed(folder.path(), 8u << 20, 5s);
  if (!speed && speed.error().str().find("Invalid argument") != std::string::npos) GTEST_SKIP() << "this file system has no direct I/O";
  ASSERT_TRUE(speed) << speed.error().str();
  EXPECT_GT(speed->write_mb_s, 0);
  EXPECT_GT(speed->read_mb_s, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_FALSE(measureSpeed("/nonexistent", 1u << 20, 1s));
}

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() {
    put("proc/self/mounts", "");
    programs.on("systemctl", "");
    for (const char* verb : {"systemctl start", "systemctl restart"})
      programs.on(verb, [this](const io::Command&) -> Result<io::ProcessExit> {
        put("proc/self/mounts", mounted);
        return io::ProcessExit{};
      });
    programs.on("dpkg-query", "installed 1.0");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content)) throw std::runtime_error(path);
  }
  Result<nlohmann::json> run() { return test::runAsync(context, setStorage(tools, params, std::make_shared<TaskContext>("t", 60s))); }

  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
  std::string mounted = kRight;
  nlohmann::json params{{"name", "home"}, {"value", "mounted:abc"}, {"unit", "[Mount]\n"}, {"unit_name", "home.mount"}, {"packages", {"nfs-common"}},
                        {"source", kWanted.source}, {"at", "/home"}, {"types", "nfs nfs4"}, {"options", {"vers=4.2"}}, {"read_mb_s", 0}, {"write_mb_s", 0}};
};

TEST_F(StorageTest, mountsProvesAndTellsWhenItIsGone) {
  const auto done = run();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(*io::readFile(root / "etc/systemd/system/home.mount"), "[Mount]\n");
  EXPECT_EQ(programs.count("systemctl enable home.mount"), 1u);
  EXPECT_EQ(storageProbe(root, "home"), "mounted:abc");
  put("proc/self/mounts", "");
  EXPECT_EQ(storageProbe(root, "home"), "wrong: nothing is mounted at /home");
  EXPECT_EQ(storageProbe(root, "other"), "");
}

TEST_F(StorageTest, whatIsMountedWronglyIsAFailure) {
  mounted = "10.20.0.8:/export/home /home nfs4 rw,vers=4.2 0 0\n";
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("declared is 10.20.0.9"));
  EXPECT_EQ(storageProbe(root, "home"), "");
}

TEST_F(StorageTest, aMountThatFailsSaysWhatTheServerSaid) {
  for (const char* verb : {"systemctl start", "systemctl restart"}) programs.fails(verb, 1, "Job failed. See \"journalctl -xe\" for details.");
  programs.on("journalctl", "mount.nfs4: mounting 10.20.0.9:/export/home failed, reason given by server: No such file or directory\n");
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("10.20.0.9:/export/home cannot be mounted at /home: mount.nfs4: mounting"));
  EXPECT_EQ(storageProbe(root, "home"), "");
}

TEST_F(StorageTest, tooSlowIsAFailureWithBothNumbers) {
  params["read_mb_s"] = 1e9;
  const auto done = run();
  ASSERT_FALSE(done);
  if (done.error().str().find("Invalid argument") != std::string::npos) GTEST_SKIP() << "this file system has no direct I/O";
  EXPECT_THAT(done.error().str(), HasSubstr("declared are 0 and 1000000000"));
  EXPECT_TRUE(fs::is_empty(root / "home"));
}

TEST_F(StorageTest, wrongParametersAreRefused) {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"at", "home"}, {"unit_name", "../x.mount"}, {"unit_name", "x.service"}, {"name", "a/b"}, {"at", "/a/../etc"}}) {
    auto before = params;
    params[key] = value;
    EXPECT_EQ(run().error().code(), ErrorCode::InvalidInput) << key << " " << value;
    params = before;
  }
}

}  // namespace
}  // namespace muster::agent
