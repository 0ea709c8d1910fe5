// SPDX-License-Identifier: Apache-2.0
// A site's settings below a root of the test's own, with programs in memory: which files, in which
// order, and what is left when something is refused or dies. What real programs make of them is
// tried by host_settings_system_test.cc.
#include "agent/tasks/host_settings.h"

#include "agent/tasks/host_files.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

class HostSettingsTest : public ::testing::Test {
 protected:
  HostSettingsTest() {
    for (const char* program : {"usr/bin/apt-get", "usr/sbin/chronyd", "usr/sbin/sshd",
                                "usr/sbin/visudo", "usr/sbin/update-ca-certificates"})
      put(program, "");
    put("etc/chrony/chrony.conf", "pool 2.debian.pool.ntp.org iburst\n");
    put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nbackup:x:34:34::/var/backups:/bin/sh\n");
    put("etc/shadow", "root:*:1::::::\n");
    put("etc/group", "root:x:0:\n");
    for (const char* program : {"systemctl", "update-ca-certificates", "visudo", "sshd", "groupadd",
                                "useradd", "usermod", "chpasswd"})
      programs.on(program, "");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content))
      throw std::runtime_error(path);
  }
  std::string read(const std::string& path) {
    const auto text = io::readFile(root / path);
    return text ? *text : "none";
  }
  Result<void> apply(const std::optional<wire::HostSettings>& settings) {
    if (settings)
      put("etc/muster/host.d/site.json", wire::toJson(*settings));
    else
      fs::remove(root / "etc/muster/host.d/site.json");
    return test::runAsync(context, applyHostSettings(tools, "site"));
  }
  std::string probe() {
    std::string out;
    auto work = [&]() -> Async<void> {
      out = co_await hostProbe(tools, "site");
      co_return Result<void>();
    };
    (void)test::runAsync(context, work());
    return out;
  }
  std::vector<std::string> paths(const wire::HostSettings& settings) {
    std::vector<std::string> out;
    const auto files = hostFiles(root, "site", settings);
    if (!files) return {files.error().text()};
    for (const auto& file : *files) out.push_back(file.path);
    return out;
  }

  test::TempFolder folder;
  fs::path root = folder.path();
  test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
};

wire::HostSettings everything() {
  wire::HostSettings out;
  out.time_servers = {"10.20.0.1"};
  out.authorities = {{"ca", std::string(kPem) + kPem}};
  out.https_proxy = "http://10.20.0.3:3128";
  out.no_proxy = {"10.20.0.1", ".example.com"};
  out.users = {
      {.name = "alice", .keys = {"ssh-ed25519 AAAA alice"}, .sudo = wire::SudoRight::Free}};
  out.ssh_user_authorities = {"ssh-ed25519 AAAA ca"};
  return out;
}

TEST_F(HostSettingsTest, filesLieWhereTheSystemReadsThem) {
  EXPECT_THAT(
      paths(everything()),
      ElementsAre("etc/apt/apt.conf.d/90muster-proxy", "etc/chrony/chrony.conf",
                  "etc/muster/ssh/keys/alice", "etc/muster/ssh/site-user-authorities.pub",
                  "etc/profile.d/90-muster-proxy.sh", "etc/ssh/sshd_config.d/10-muster.conf",
                  "etc/sudoers.d/90-muster-site", "etc/systemd/system.conf.d/90-muster-proxy.conf",
                  "usr/local/share/ca-certificates/muster-site-ca-1.crt",
                  "usr/local/share/ca-certificates/muster-site-ca-2.crt"));
  fs::remove(root / "usr/bin/apt-get");
  fs::remove(root / "usr/sbin/update-ca-certificates");
  put("usr/bin/dnf", "");
  put("usr/bin/update-ca-trust", "");
  EXPECT_THAT(paths(everything()),
              ElementsAre("etc/chrony.conf", "etc/muster/ssh/keys/alice",
                          "etc/muster/ssh/site-user-authorities.pub",
                          "etc/pki/ca-trust/source/anchors/muster-site-ca-1.pem",
                          "etc/pki/ca-trust/source/anchors/muster-site-ca-2.pem",
                          "etc/profile.d/90-muster-proxy.sh",
                          "etc/ssh/sshd_config.d/10-muster.conf", "etc/sudoers.d/90-muster-site",
                          "etc/systemd/system.conf.d/90-muster-proxy.conf"));
  EXPECT_EQ(sudoersFile("a.b"), "etc/sudoers.d/90-muster-a_b")
      << "sudo passes over names with dots";
}

TEST_F(HostSettingsTest, whatTheSystemLacksIsNamedBeforeAnythingIsWritten) {
  for (const auto& [program, word] :
       {std::pair("usr/sbin/chronyd", "add chrony"), std::pair("usr/sbin/sshd", "openssh-server"),
        std::pair("usr/sbin/visudo", "add sudo"),
        std::pair("usr/sbin/update-ca-certificates", "ca-certificates")}) {
    fs::remove(root / program);
    const auto failed = apply(everything());
    ASSERT_FALSE(failed) << program;
    EXPECT_EQ(failed.error().code(), ErrorCode::NotFound);
    EXPECT_THAT(failed.error().text(), HasSubstr(word));
    EXPECT_EQ(read("etc/profile.d/90-muster-proxy.sh"), "none");
    put(program, "");
  }
}

TEST_F(HostSettingsTest, timesyncdIsAskedWhereThereIsNoChrony) {
  fs::remove(root / "usr/sbin/chronyd");
  put("usr/lib/systemd/systemd-timesyncd", "");
  wire::HostSettings time;
  time.time_servers = {"10.20.0.1", "ntp.example.com"};
  ASSERT_TRUE(apply(time));
  EXPECT_THAT(read("etc/systemd/timesyncd.conf.d/90-muster.conf"),
              HasSubstr("[Time]\nNTP=10.20.0.1 ntp.example.com\nFallbackNTP=\n"));
  EXPECT_EQ(programs.count("systemctl restart systemd-timesyncd"), 1u);
  programs.on("timedatectl show-timesync", "10.20.0.1 ntp.example.com\n");
  EXPECT_EQ(probe(), "as-declared");
  programs.on("timedatectl show-timesync", "10.20.0.1\n");
  EXPECT_EQ(probe(), "drift:time servers");
}

TEST_F(HostSettingsTest, whatIsDeclaredNoMoreGoesAndTheDistributionsOwnComesBack) {
  wire::HostSettings time;
  time.time_servers = {"10.20.0.1"};
  ASSERT_TRUE(apply(time));
  EXPECT_THAT(read("etc/chrony/chrony.conf"), HasSubstr("server 10.20.0.1 iburst\n"));
  ASSERT_TRUE(apply(time));
  EXPECT_THAT(read("etc/chrony/chrony.conf.before-muster"), HasSubstr("pool 2.debian"))
      << "ours is never kept as the distribution's";
  ASSERT_TRUE(apply(std::nullopt));
  EXPECT_EQ(read("etc/chrony/chrony.conf"), "pool 2.debian.pool.ntp.org iburst\n");
  EXPECT_EQ(read("etc/chrony/chrony.conf.before-muster"), "none");
  EXPECT_EQ(read("var/lib/muster/host-site.json"), "none");
  EXPECT_EQ(programs.count("systemctl restart chrony"), 3u);
  EXPECT_EQ(probe(), "");
  programs.clear();
  ASSERT_TRUE(apply(std::nullopt));
  EXPECT_THAT(programs.commands(), IsEmpty()) << "a driver without host has nothing to do";
}

TEST_F(HostSettingsTest, aFileThatSudoDoesNotTakeGoesAgain) {
  programs.fails("visudo", 1, "parse error");
  const auto failed = apply(everything());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("/etc/sudoers.d/90-muster-site is removed again"));
  EXPECT_EQ(read("etc/sudoers.d/90-muster-site"), "none");
  programs.on("visudo", "");
  programs.fails("sshd -t", 255, "Bad configuration option");
  const auto by_sshd = apply(everything());
  ASSERT_FALSE(by_sshd);
  EXPECT_EQ(read("etc/ssh/sshd_config.d/10-muster.conf"), "none");
  EXPECT_EQ(programs.count("systemctl try-reload-or-restart ssh"), 0u) << "it keeps what it has";
  EXPECT_THAT(probe(), HasSubstr("drift:/etc/ssh/sshd_config.d/10-muster.conf"));
}

TEST_F(HostSettingsTest, whoeverDiesInBetweenForgetsNothing) {
  programs.on("useradd", [](const io::Command&) -> Result<io::ProcessExit> {
    return fail(ErrorCode::Internal, "the agent is gone");
  });
  ASSERT_FALSE(apply(everything()));
  EXPECT_EQ(programs.count("update-ca-certificates"), 0u);
  programs.on("useradd", "");
  ASSERT_TRUE(apply(everything()));
  EXPECT_EQ(programs.count("update-ca-certificates"), 1u)
      << "files that lie there already are told of too";
  ASSERT_FALSE([&] {
    programs.fails("visudo", 1, "gone");
    return apply(everything());
  }());
  ASSERT_TRUE(apply(std::nullopt));
  EXPECT_EQ(read("usr/local/share/ca-certificates/muster-site-ca-1.crt"), "none");
  EXPECT_THAT(read("etc/chrony/chrony.conf"), HasSubstr("pool 2.debian"));
}

TEST_F(HostSettingsTest, accountsOfTheSystemAreLeftAlone) {
  auto settings = everything();
  settings.users[0].name = "backup";
  const auto failed = apply(settings);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(failed.error().text(),
              HasSubstr("backup is an account of the system itself (uid 34)"));
  EXPECT_EQ(programs.count("usermod"), 0u);
}

TEST_F(HostSettingsTest, aHashIsNoArgumentOfAProgram) {
  auto settings = everything();
  settings.users[0].password_hash =
      "$6$saltsalt$"
      "8RWsOfwR6M6PpnoeQiEiWzNTPo1f0HjVYjDnLZhGx16aBFRkeqiHAzfXP/LgrOWMBMXqiU2pLrXsSOHNUyUm91";
  ASSERT_TRUE(apply(settings));
  bool given = false;
  for (const auto& command : programs.commands()) {
    EXPECT_THAT(test::ScriptedPrograms::wordsOf(command), Not(HasSubstr("$6$")));
    given = given || (command.program == "chpasswd" &&
                      command.stdin_text == "alice:" + settings.users[0].password_hash + "\n");
  }
  EXPECT_TRUE(given);
}

TEST_F(HostSettingsTest, theKernelIsAskedForCrashAndConsole) {
  wire::HostSettings kernel;
  kernel.crash_kernel = "512M";
  ASSERT_TRUE(apply(kernel));
  EXPECT_EQ(probe(), "drift:crash kernel is not reserved");
  put("sys/kernel/kexec_crash_size", "536870912\n");
  put("sys/kernel/kexec_crash_loaded", "0\n");
  EXPECT_EQ(probe(), "drift:crash kernel is not loaded");
  put("sys/kernel/kexec_crash_loaded", "1\n");
  EXPECT_EQ(probe(), "as-declared");
  kernel.serial_console = "ttyS1";
  ASSERT_TRUE(apply(kernel));
  put("sys/class/tty/console/active", "tty0 ttyS0\n");
  EXPECT_EQ(probe(), "drift:console ttyS1");
  put("sys/class/tty/console/active", "tty0 ttyS0 ttyS1\n");
  EXPECT_EQ(probe(), "as-declared");
}

TEST_F(HostSettingsTest, aProbesValueHasNoneOfTheCharactersOfItsList) {
  put("etc/muster/host.d/site.json", R"({"time_servers":["a,b=c"]})");
  EXPECT_THAT(probe(), testing::AllOf(HasSubstr("drift:settings file"), Not(HasSubstr(",")),
                                      Not(HasSubstr("="))));
  ASSERT_FALSE(test::runAsync(context, applyHostSettings(tools, "site")));
}

}  // namespace
}  // namespace muster::agent
