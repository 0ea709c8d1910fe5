// SPDX-License-Identifier: Apache-2.0
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
constexpr const char* kRight =
    "/dev/sda1 / ext4 rw 0 0\n10.20.0.9:/export/home /home nfs4 rw,vers=4.2,hard 0 0\n";

TEST(Mounts, theRightOneHasNoProblem) { EXPECT_EQ(mountProblem(parseMounts(kRight), kWanted), ""); }

TEST(Mounts, sourceTypeAndOptionsAreEachFound) {
  auto problem = [](std::string text) { return mountProblem(parseMounts(text), kWanted); };
  EXPECT_THAT(problem(""), HasSubstr("nothing is mounted at /home"));
  EXPECT_THAT(problem("10.20.0.8:/export/home /home nfs4 rw,vers=4.2 0 0\n"),
              HasSubstr("declared is 10.20.0.9:/export/home"));
  EXPECT_THAT(problem("10.20.0.9:/export/home /home fuse rw,vers=4.2 0 0\n"),
              HasSubstr("type fuse"));
  EXPECT_THAT(problem("10.20.0.9:/export/home /home nfs4 rw,vers=4.1 0 0\n"),
              HasSubstr("without vers=4.2"));
  EXPECT_THAT(problem(std::string(kRight) + "tmpfs /home tmpfs rw 0 0\n"),
              HasSubstr("tmpfs is mounted"))
      << "the last one is on top";
}

TEST(Mounts, escapesAreTurnedBackAndRubbishIsSkipped) {
  EXPECT_EQ(parseMounts("a\\040b /c\\011d x rw 0 0\n").at(0).source, "a b");
  EXPECT_TRUE(parseMounts("\n\nnonsense\n").empty());
}

TEST(SpeedTest, isMeasuredAndLeavesNothing) {
  test::TempFolder folder;
  const auto speed = measureSpeed(folder.path(), 8u << 20, 5s);
  if (!speed && speed.error().str().find("Invalid argument") != std::string::npos)
    GTEST_SKIP() << "this file system has no direct I/O";
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
    programs.on("systemctl start", [this](const io::Command&) -> Result<io::ProcessExit> {
      if (*io::readFile(root / "proc/self/mounts") == "")
        put("proc/self/mounts", mounted);  // else it is active: nothing happens
      return io::ProcessExit{};
    });
    programs.on("systemctl restart", [this](const io::Command&) -> Result<io::ProcessExit> {
      put("proc/self/mounts", mounted);
      return io::ProcessExit{};
    });
    programs.on("dpkg-query", "installed 1.0");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content))
      throw std::runtime_error(path);
  }
  Result<nlohmann::json> run() {
    return test::runAsync(context,
                          setStorage(tools, params, std::make_shared<TaskContext>("t", 60s)));
  }

  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
  std::string mounted = kRight;
  nlohmann::json params{{"name", "home"},
                        {"value", "mounted:abc"},
                        {"unit", "[Mount]\n"},
                        {"unit_name", "home.mount"},
                        {"packages", {"nfs-common"}},
                        {"source", kWanted.source},
                        {"at", "/home"},
                        {"types", "nfs nfs4"},
                        {"options", {"vers=4.2"}},
                        {"read_mb_s", 0},
                        {"write_mb_s", 0}};
};

TEST_F(StorageTest, mountsProvesAndTellsWhenItIsGone) {
  const auto done = run();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(*io::readFile(root / "etc/systemd/system/home.mount"), "[Mount]\n");
  EXPECT_EQ(programs.count("systemctl enable home.mount"), 1u);
  EXPECT_EQ(storageProbe(root, "home"), "mounted:abc");
  programs.clear();
  ASSERT_TRUE(run());
  EXPECT_EQ(programs.count("systemctl restart"), 0u) << "what is right is left mounted";
  put("proc/self/mounts", "");
  EXPECT_EQ(storageProbe(root, "home"), "wrong: nothing is mounted at /home");
  EXPECT_EQ(storageProbe(root, "other"), "");
}

TEST_F(StorageTest, anOptionThatIsTakenAwayIsTakenFromTheMount) {
  mounted = "10.20.0.9:/export/home /home nfs4 rw,noatime,vers=4.2 0 0\n";
  params["unit"] = "[Mount]\nOptions=vers=4.2,noatime\n";
  params["options"] = {"vers=4.2", "noatime"};
  ASSERT_TRUE(run());
  mounted = kRight;
  params["unit"] = "[Mount]\nOptions=vers=4.2\n";
  params["options"] = {"vers=4.2"};
  params["value"] = "mounted:def";
  programs.fails("systemctl restart", 1, "target is busy");
  programs.on("journalctl", "umount: /home: target is busy\n");
  ASSERT_FALSE(run());
  EXPECT_EQ(storageProbe(root, "home"), "") << "the unit is new, the mount is not";
  programs.on("systemctl restart", [this](const io::Command&) -> Result<io::ProcessExit> {
    put("proc/self/mounts", mounted);
    return io::ProcessExit{};
  });
  programs.clear();
  ASSERT_TRUE(run());
  EXPECT_EQ(programs.count("systemctl restart home.mount"), 1u)
      << "also by an attempt that finds the unit as it is to be";
  EXPECT_EQ(*io::readFile(root / "proc/self/mounts"), kRight);
  EXPECT_EQ(storageProbe(root, "home"), "mounted:def");
}

TEST_F(StorageTest, aMountThatSomebodyChangedIsMadeAnew) {
  ASSERT_TRUE(run());
  put("proc/self/mounts", "10.20.0.9:/export/home /home nfs4 ro,vers=4.2 0 0\n");
  EXPECT_EQ(storageProbe(root, "home"), "wrong: /home is mounted read-only, which is not declared");
  ASSERT_TRUE(run());
  EXPECT_EQ(storageProbe(root, "home"), "mounted:abc");
}

TEST_F(StorageTest, anotherPlaceLeavesNothingAtTheOldOne) {
  params["unit"] = "# Written by muster for storage home; changes are put back.\n[Mount]\n";
  ASSERT_TRUE(run());
  put("etc/systemd/system/data.mount",
      "# Written by muster for storage data; changes are put back.\n");
  put("etc/systemd/system/own.mount", "[Mount]\n");
  params["at"] = "/users";
  params["unit_name"] = "users.mount";
  mounted = "10.20.0.9:/export/home /users nfs4 rw,vers=4.2 0 0\n";
  programs.fails("systemctl disable", 1, "failed");
  programs.on("journalctl", "umount: /home: target is busy\n");
  const auto busy = run();
  ASSERT_FALSE(busy);
  EXPECT_THAT(busy.error().str(), HasSubstr("home was mounted by home.mount before, which cannot "
                                            "be ended: umount: /home: target is busy"));
  programs.on("systemctl disable", "");
  programs.clear();
  ASSERT_TRUE(run());
  EXPECT_EQ(programs.count("systemctl disable --now home.mount"), 1u);
  EXPECT_EQ(programs.count("systemctl disable"), 1u) << "what is others' stays";
  EXPECT_FALSE(fs::exists(root / "etc/systemd/system/home.mount"));
  EXPECT_TRUE(fs::exists(root / "etc/systemd/system/data.mount"));
}

TEST_F(StorageTest, whatIsNotWantedAnyMoreIsTakenAwayAndNothingElse) {
  params["unit"] = "# Written by muster for storage home; changes are put back.\n[Mount]\n";
  ASSERT_TRUE(run());
  put("home/alice/thesis.tex", "mine");
  put("etc/systemd/system/data.mount",
      "# Written by muster for storage data; changes are put back.\n");
  put("etc/systemd/system/own.mount", "[Mount]\n");
  params = {{"name", "home"}, {"remove", true}};
  programs.fails("systemctl disable", 1, "failed");
  programs.on("journalctl", "umount: /home: target is busy\n");
  const auto busy = run();
  ASSERT_FALSE(busy);
  EXPECT_THAT(busy.error().str(), HasSubstr("umount: /home: target is busy"));
  EXPECT_TRUE(fs::exists(root / "etc/systemd/system/home.mount")) << "it is still to be taken away";
  programs.on("systemctl disable", "");
  programs.clear();
  ASSERT_TRUE(run());
  EXPECT_EQ(programs.count("systemctl disable --now home.mount"), 1u);
  EXPECT_EQ(programs.count("systemctl disable"), 1u);
  EXPECT_FALSE(fs::exists(root / "etc/systemd/system/home.mount"));
  EXPECT_TRUE(fs::exists(root / "etc/systemd/system/data.mount"));
  EXPECT_TRUE(fs::exists(root / "etc/systemd/system/own.mount"));
  EXPECT_EQ(io::readFile(root / "home/alice/thesis.tex").value_or("gone"), "mine");
  EXPECT_EQ(storageProbe(root, "home"), "");
  ASSERT_TRUE(run()) << "a second time there is nothing to do";
  params["name"] = "../data";
  EXPECT_EQ(run().error().code(), ErrorCode::InvalidInput);
}

TEST_F(StorageTest, whatIsMountedWronglyIsAFailure) {
  mounted = "10.20.0.8:/export/home /home nfs4 rw,vers=4.2 0 0\n";
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("declared is 10.20.0.9"));
  EXPECT_EQ(storageProbe(root, "home"), "");
}

TEST_F(StorageTest, aMountThatFailsSaysWhatTheServerSaid) {
  for (const char* verb : {"systemctl start", "systemctl restart"})
    programs.fails(verb, 1, "Job failed. See \"journalctl -xe\" for details.");
  programs.on("journalctl",
              "mount.nfs4: mounting 10.20.0.9:/export/home failed, reason given by server: No such "
              "file or directory\n");
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(),
              HasSubstr("10.20.0.9:/export/home cannot be mounted at /home: mount.nfs4: mounting"));
  EXPECT_EQ(storageProbe(root, "home"), "");
}

TEST_F(StorageTest, tooSlowIsAFailureWithBothNumbers) {
  params["read_mb_s"] = 1'000'000'000;
  const auto done = run();
  ASSERT_FALSE(done);
  if (done.error().str().find("Invalid argument") != std::string::npos)
    GTEST_SKIP() << "this file system has no direct I/O";
  EXPECT_THAT(done.error().str(), HasSubstr("declared are 0 and 1000000000"));
  EXPECT_TRUE(fs::is_empty(root / "home"));
}

TEST_F(StorageTest, wrongParametersAreRefused) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"at", "home"},
                                                        {"unit_name", "../x.mount"},
                                                        {"unit_name", "x.service"},
                                                        {"name", "a/b"},
                                                        {"at", "/a/../etc"}}) {
    auto before = params;
    params[key] = value;
    EXPECT_EQ(run().error().code(), ErrorCode::InvalidInput) << key << " " << value;
    params = before;
  }
}

}  // namespace
}  // namespace muster::agent
