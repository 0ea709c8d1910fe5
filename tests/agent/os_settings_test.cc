// A driver's settings against a root folder of the test's own and programs in memory.
#include "agent/tasks/os_settings.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

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
    for (const char* program : {"systemctl enable", "systemd-run", "apt-get", "apt-mark"}) programs.on(program, "");
    programs.on("systemctl show", "active\n");
    programs.fails("dpkg-query", 1, "none");
    programs.fails("modinfo", 1, "none");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content)) throw std::runtime_error(path);
  }
  std::string read(const std::string& path) {
    auto text = io::readFile(root / path);
    return text ? *text : "unreadable";
  }
  Result<nlohmann::json> install() {
    return test::runAsync(context, installDriver(tools, params, std::make_shared<TaskContext>("t", 60s)));
  }
  std::string probe(const std::string& name) {
    std::string out;
    auto work = [&]() -> Async<void> {
      auto read_it = readProbes(tools, {name});
      auto values = co_await std::move(read_it);
      out = values[name];
      co_return Result<void>();
    };
    (void)test::runAsync(context, work());
    return out;
  }

  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
  std::map<std::string, std::string> files{{"etc/sysctl.d/90-muster-tune.conf", "vm.nr_hugepages = 1024\n"}};
  nlohmann::json params{{"name", "tune"}, {"packages", nlohmann::json::array()}, {"files", files}, {"verify", nlohmann::json::object()}};
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
  files = {{"etc/muster/kernel-args.d/tune", "iommu=pt\n"}};
  params["files"] = files;
  params["verify"]["config.tune"] = digest();
  const auto first = install();
  ASSERT_FALSE(first);
  EXPECT_TRUE(first.error().canRetry()) << "the controller asks again when the machine is back";
  EXPECT_THAT(first.error().str(), HasSubstr("restarting: the kernel was started without iommu=pt"));
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  EXPECT_EQ(read("etc/muster/kernel-args.cfg"), "set muster_args=\"iommu=pt\"\n");
  put("proc/sys/kernel/random/boot_id", "boot-2\n");
  const auto vain = install();
  ASSERT_FALSE(vain);
  EXPECT_FALSE(vain.error().canRetry());
  EXPECT_THAT(vain.error().str(), HasSubstr("was restarted for it, and still"));
  EXPECT_EQ(programs.count("systemd-run"), 1u);
  put("proc/cmdline", "root=x iommu=pt ro\n");
  EXPECT_TRUE(install());
}

TEST_F(SettingsTest, aModuleThatIsNotTheInstalledOneNeedsARestart) {
  put("sys/module/nvidia/version", "535.261.03\n");
  params["modules"] = {"nvidia"};
  params["verify"] = {{"module-version.nvidia", "570.*"}};
  params.erase("files");
  programs.on("modprobe", "");
  programs.on("modinfo -F version nvidia", "570.124.06\n");
  const auto done = install();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("module nvidia is loaded with version 535.261.03, installed is 570.124.06"));
  programs.on("modinfo -F version nvidia", "535.261.03\n");
  fs::remove(root / "var/lib/muster/restarted-tune");
  const auto wrong = install();
  EXPECT_THAT(wrong.error().str(), HasSubstr("what runs does not fit")) << "a restart would change nothing";
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
  for (const char* path : {"etc/shadow", "etc/sysctl.d/90-muster-other.conf", "etc/modprobe.d/../passwd", "/etc/sysctl.d/90-muster-tune.conf"}) {
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
  params["archives"] = {{{"name", "cuda"}, {"apt", "Signed-By: /etc/apt/keyrings/muster-tune-cuda.key\n"}, {"dnf", "x"}, {"key", io::toBase64(key)}}};
  ASSERT_TRUE(install());
  EXPECT_EQ(read("etc/apt/sources.list.d/muster-tune-cuda.sources"), "Signed-By: /etc/apt/keyrings/muster-tune-cuda.asc\n");
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
  programs.on("rpm -q", [&](const io::Command&) -> Result<io::ProcessExit> { return io::ProcessExit{0, installed, ""}; });
  programs.on("dnf install", "");
  programs.on("dnf downgrade", [&](const io::Command&) -> Result<io::ProcessExit> {
    installed = "550.1-1";
    return io::ProcessExit{};
  });
  params["packages"] = {"nvidia-driver=550.1-1"};
  params["verify"] = {{"package.nvidia-driver", "550.*"}};
  const auto done = install();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(programs.count("dnf downgrade -y --setopt=install_weak_deps=False --allowerasing nvidia-driver-550.1-1"), 1u);
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
