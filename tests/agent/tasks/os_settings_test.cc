// SPDX-License-Identifier: Apache-2.0
// A driver's settings against a root folder of the test's own and programs in memory.
#include "agent/tasks/os_settings.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <utility>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    put("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n");
    put("proc/sys/kernel/random/boot_id", "boot-1\n");
    put("proc/cmdline", "root=x ro\n");
    put("proc/sys/vm/nr_hugepages", "0\n");
    put("usr/bin/apt-get", "");
    programs.on("sysctl", [this](const io::Command&) -> Result<io::ProcessExit> {
      put("proc/sys/vm/nr_hugepages", "1024\n");
      return io::ProcessExit{};
    });
    programs.on("systemd-run", [this](const io::Command&) -> Result<io::ProcessExit> {
      if (std::exchange(restart_unit, true))
        return io::ProcessExit{1, "",
                               "Failed to start transient timer unit: Unit muster-restart.timer "
                               "was already loaded or has a fragment file."};
      return io::ProcessExit{};
    });
    for (const char* program : {"systemctl enable", "apt-get", "apt-mark"})
      programs.on(program, "");
    programs.on("systemctl show", "active\n");
    programs.fails("dpkg-query", 1, "none");
    programs.fails("modinfo", 1, "none");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content))
      throw std::runtime_error(path);
  }
  std::string read(const std::string& path) {
    auto text = io::readFile(root / path);
    return text ? *text : "unreadable";
  }
  /// An attempt beside the test. Cutting it is the agent's death, with or without its machine.
  struct Attempt {
    TaskContextPtr context;
    std::optional<Result<nlohmann::json>> outcome;
    bool gone = false;
    asio::cancellation_signal cut;
    bool restarts() const {
      const auto reasons = context->progressNow().reasons;
      return !gone && std::ranges::find(reasons, wire::TaskReason::Restarting) != reasons.end();
    }
  };
  /// Until it has ended or waits for the restart.
  std::unique_ptr<Attempt> begin(const std::string& id, const nlohmann::json& what) {
    auto attempt = std::make_unique<Attempt>();
    attempt->context = std::make_shared<TaskContext>(id, 60s);
    asio::co_spawn(context, installDriver(tools, what, attempt->context),
                   asio::bind_cancellation_slot(
                       attempt->cut.slot(), [at = attempt.get()](const std::exception_ptr& thrown,
                                                                 Result<nlohmann::json> outcome) {
                         at->gone = true;
                         if (!thrown) at->outcome = std::move(outcome);
                       }));
    go([&] { return attempt->gone || attempt->restarts(); });
    return attempt;
  }
  std::unique_ptr<Attempt> begin(const std::string& id) { return begin(id, params); }
  template <class Until>
  void go(Until until) {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    do {
      context.restart();
      context.run_for(1ms);
    } while (!until() && std::chrono::steady_clock::now() < limit);
  }
  void die(Attempt& attempt) {
    attempt.cut.emit(asio::cancellation_type::terminal);
    go([&] { return attempt.gone; });
    ASSERT_TRUE(attempt.gone);
  }
  void wantArgument() {
    files = {{"etc/muster/kernel-args.d/tune", "iommu=pt\n"}};
    params["files"] = files;
    params["verify"]["config.tune"] = digest();
  }
  void boot(const std::string& id, const std::string& cmdline) {
    put("proc/sys/kernel/random/boot_id", id + "\n");
    put("proc/cmdline", cmdline + "\n");
    restart_unit = false;
  }
  Result<nlohmann::json> install() {
    return test::runAsync(context,
                          installDriver(tools, params, std::make_shared<TaskContext>("t", 60s)));
  }
  std::string probe(const std::string& name) {
    std::string out;
    auto work = [&]() -> Async<void> {
      auto values = co_await readProbes(tools, {name});
      out = values[name];
      co_return Result<void>();
    };
    (void)test::runAsync(context, work());
    return out;
  }

  bool restart_unit = false;  ///< there is one
  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
  std::map<std::string, std::string> files{
      {"etc/sysctl.d/90-muster-tune.conf", "vm.nr_hugepages = 1024\n"}};
  nlohmann::json params{{"name", "tune"},
                        {"packages", nlohmann::json::array()},
                        {"files", files},
                        {"verify", nlohmann::json::object()}};
  std::string digest() { return io::sha256Hex(nlohmann::json(files).dump()).substr(0, 12); }
};

TEST_F(SettingsTest, filesAreWrittenPutIntoForceAndProven) {
  params["verify"]["config.tune"] = digest();
  const auto done = install();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ((*done)["config.tune"], digest());
  EXPECT_EQ(read("etc/sysctl.d/90-muster-tune.conf"), "vm.nr_hugepages = 1024\n");
  EXPECT_EQ(programs.count("systemd-run"), 0u) << "no restart where none is needed";
}

TEST_F(SettingsTest, driftIsFoundAgain) {
  ASSERT_TRUE(install());
  EXPECT_EQ(probe("config.tune"), digest());
  put("proc/sys/vm/nr_hugepages", "7\n");
  EXPECT_EQ(probe("config.tune"), digest() + ":drift:vm/nr_hugepages");
  put("proc/sys/vm/nr_hugepages", "1024\n");
  put("etc/sysctl.d/90-muster-tune.conf", "vm.nr_hugepages = 8\n");
  EXPECT_NE(probe("config.tune").substr(0, 12), digest());
}

TEST_F(SettingsTest, theKernelsArgumentsNeedOneRestartAndNeverTwo) {
  wantArgument();
  const auto first = begin("i1");
  ASSERT_TRUE(first->restarts()) << "an attempt that ended before the machine would be followed by "
                                    "one that finds it as it was";
  EXPECT_THAT(first->context->progressNow().text,
              HasSubstr("the kernel was started without iommu=pt"));
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  EXPECT_EQ(read("etc/muster/kernel-args.cfg"), "set muster_args=\"iommu=pt\"\n");
  die(*first);
  boot("boot-2", "root=x ro");
  const auto vain = begin("i1.2");
  ASSERT_TRUE(vain->outcome && !*vain->outcome);
  EXPECT_FALSE(vain->outcome->error().canRetry());
  EXPECT_THAT(vain->outcome->error().str(), HasSubstr("was restarted for it, and still"));
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  boot("boot-2", "root=x iommu=pt ro");
  EXPECT_TRUE(install());
}

TEST_F(SettingsTest, anAttemptInTheSameBootWaitsForTheRestartThatIsOrdered) {
  wantArgument();
  const auto first = begin("i1");
  die(*first);  // the agent alone; the machine goes down a moment later
  const auto second = begin("i1.2");
  ASSERT_TRUE(second->restarts()) << second->outcome->error().str();
  EXPECT_EQ(programs.count("systemd-run"), 1u) << "systemd takes no second unit of that name";
  die(*second);
  boot("boot-2", "root=x iommu=pt ro");
  const auto third = begin("i1.3");
  ASSERT_TRUE(third->outcome && *third->outcome);
}

TEST_F(SettingsTest, aRestartThatHelpedStandsAgainstNoLaterOne) {
  wantArgument();
  die(*begin("i1"));
  boot("boot-2", "root=x iommu=pt ro");
  const auto helped = begin("i1.2");
  ASSERT_TRUE(helped->outcome && *helped->outcome);
  EXPECT_FALSE(fs::exists(root / "var/lib/muster/restarted-tune"));
  boot("boot-9", "root=x ro");  // it was taken back, restarted without, and is declared again
  const auto again = begin("i1.3");
  EXPECT_TRUE(again->restarts()) << "also where an action takes as long";
  die(*again);
}

TEST_F(SettingsTest, anotherActionMayRestartForTheSameReason) {
  wantArgument();
  put("var/lib/muster/restarted-tune",
      "boot-0\nthe kernel was started without iommu=pt");  // as older agents wrote it
  die(*begin("gpu001.driver.tune.aaaaaaaaaaaa"));
  boot("boot-2", "root=x ro");
  for (const char* attempt : {".2", ".3"}) {
    const auto vain = begin(std::string("gpu001.driver.tune.aaaaaaaaaaaa") + attempt);
    ASSERT_TRUE(vain->outcome && !*vain->outcome);
    EXPECT_THAT(vain->outcome->error().str(), HasSubstr("was restarted for it, and still"));
  }
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  const auto mended =
      begin("gpu001.driver.tune.bbbbbbbbbbbb");  // the operator has mended the boot menu
  EXPECT_TRUE(mended->restarts());
  EXPECT_EQ(programs.count("systemd-run"), 2u);
  die(*mended);
}

TEST_F(SettingsTest, aRestartThatDoesNotComeIsToldAndMayBeOrderedAnew) {
  wantArgument();
  const auto first = begin("i1");
  ASSERT_TRUE(first->restarts());
  clock.advance(kRestartLimit);
  go([&] { return first->gone; });
  ASSERT_TRUE(first->outcome && !*first->outcome);
  EXPECT_TRUE(first->outcome->error().canRetry());
  EXPECT_THAT(first->outcome->error().str(), HasSubstr("has not come within 5 minutes"));
  restart_unit = false;
  const auto second = begin("i1.2");
  EXPECT_TRUE(second->restarts());
  EXPECT_EQ(programs.count("systemd-run"), 2u);
  die(*second);
}

TEST_F(SettingsTest, oneRestartServesTwoDrivers) {
  wantArgument();
  const auto first = begin("i1");
  die(*first);
  auto other = params;
  other["name"] = "other";
  other["files"] = {{"etc/muster/kernel-args.d/other", "quiet\n"}};
  other["verify"] = {{"config.other", "x"}};
  const auto second = begin("i2", other);
  EXPECT_TRUE(second->restarts());
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  die(*second);
}

TEST_F(SettingsTest, anOrderThatIsRefusedLeavesNoMarker) {
  wantArgument();
  restart_unit = true;  // somebody else's
  const auto refused = begin("i1");
  go([&] { return refused->gone; });
  ASSERT_TRUE(refused->outcome && !*refused->outcome);
  EXPECT_THAT(refused->outcome->error().str(), HasSubstr("could not be ordered"));
  EXPECT_FALSE(fs::exists(root / "var/lib/muster/restarted-tune"));
}

TEST_F(SettingsTest, aModuleThatIsNotTheInstalledOneNeedsARestart) {
  put("sys/module/nvidia/version", "535.261.03\n");
  params["modules"] = {"nvidia"};
  params["verify"] = {{"module-version.nvidia", "570.*"}};
  params.erase("files");
  programs.on("modprobe", "");
  programs.on("modinfo -F version nvidia", "570.124.06\n");
  const auto restarting = begin("i1");
  ASSERT_TRUE(restarting->restarts());
  EXPECT_THAT(
      restarting->context->progressNow().text,
      HasSubstr("module nvidia is loaded with version 535.261.03, installed is 570.124.06"));
  die(*restarting);
  programs.on("modinfo -F version nvidia", "535.261.03\n");
  fs::remove(root / "var/lib/muster/restarted-tune");
  const auto wrong = install();
  EXPECT_THAT(wrong.error().str(), HasSubstr("what runs does not fit"))
      << "a restart would change nothing";
}

TEST_F(SettingsTest, parametersOfLoadedModulesAreCompared) {
  files = {{"etc/modprobe.d/muster-tune.conf", "options nvidia NVreg_A=1\n"}};
  params["files"] = files;
  ASSERT_TRUE(install());
  EXPECT_EQ(probe("config.tune"), digest()) << "not loaded yet";
  put("sys/module/nvidia/parameters/NVreg_A", "0\n");
  EXPECT_EQ(probe("config.tune"), digest() + ":restart");
  put("sys/module/nvidia/parameters/NVreg_A", "Y\n");
  EXPECT_EQ(probe("config.tune"), digest());
}

TEST_F(SettingsTest, nothingIsWrittenOutsideOfItsPlaces) {
  for (const char* path : {"etc/shadow", "etc/sysctl.d/90-muster-other.conf",
                           "etc/modprobe.d/../passwd", "/etc/sysctl.d/90-muster-tune.conf"}) {
    params["files"] = {{path, "x"}};
    const auto done = install();
    ASSERT_FALSE(done) << path;
    EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  }
  params.erase("files");
  params["archives"] = {{{"name", "cuda"}, {"apt", "x"}, {"dnf", "x"}, {"key", ""}}};
  EXPECT_THAT(install().error().str(), HasSubstr("has no key for cuda"));
}

TEST_F(SettingsTest, archivesComeWithTheirKeyAndGoWithTheirDeclaration) {
  const std::string key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n…\n";
  params["packages"] = {"cuda-drivers=570.124.06-1"};
  params["archives"] = {{{"name", "cuda"},
                         {"apt", "Signed-By: /etc/apt/keyrings/muster-tune-cuda.key\n"},
                         {"dnf", "x"},
                         {"key", io::toBase64(key)}}};
  ASSERT_TRUE(install());
  EXPECT_EQ(read("etc/apt/sources.list.d/muster-tune-cuda.sources"),
            "Signed-By: /etc/apt/keyrings/muster-tune-cuda.asc\n");
  EXPECT_EQ(read("etc/apt/keyrings/muster-tune-cuda.asc"), key);
  EXPECT_EQ(programs.count("apt-get update"), 1u);
  params.erase("archives");
  ASSERT_TRUE(install());
  EXPECT_FALSE(fs::exists(root / "etc/apt/sources.list.d/muster-tune-cuda.sources"));
  EXPECT_FALSE(fs::exists(root / "etc/apt/keyrings/muster-tune-cuda.asc"));
}

TEST_F(SettingsTest, dnfInstallsThePinsAndGoesDownWhenTold) {
  fs::remove(root / "usr/bin/apt-get");
  put("usr/bin/dnf", "");
  std::string installed = "570.1-1";
  programs.on("rpm -q", [&](const io::Command&) -> Result<io::ProcessExit> {
    return io::ProcessExit{0, installed, ""};
  });
  programs.on("dnf install", "");
  programs.on("dnf downgrade", [&](const io::Command&) -> Result<io::ProcessExit> {
    installed = "550.1-1";
    return io::ProcessExit{};
  });
  params["packages"] = {"nvidia-driver=550.1-1"};
  params["verify"] = {{"package.nvidia-driver", "550.*"}};
  const auto done = install();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(
      programs.count(
          "dnf downgrade -y --setopt=install_weak_deps=False --allowerasing nvidia-driver-550.1-1"),
      1u);
}

TEST_F(SettingsTest, fabricManagerMustBeOfTheLoadedDriversVersion) {
  put("sys/module/nvidia/version", "570.124.06\n");
  programs.on("nv-fabricmanager --version", "Fabric Manager version is : 570.124.06\n");
  EXPECT_EQ(probe("fabricmanager.match"), "yes");
  programs.on("nv-fabricmanager --version", "Fabric Manager version is : 570.86.15\n");
  EXPECT_EQ(probe("fabricmanager.match"), "no:570.86.15/570.124.06");
  programs.on("modinfo -F filename nvidia", "/lib/modules/6.1/updates/dkms/nvidia.ko\n");
  EXPECT_EQ(probe("module-file.nvidia"), "dkms");
  EXPECT_EQ(probe("service.nvidia-persistenced"), "active");
}

}  // namespace
}  // namespace muster::agent
