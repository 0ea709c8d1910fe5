// SPDX-License-Identifier: Apache-2.0
// A site's settings in a real Debian system: useradd, chpasswd, visudo, sshd,
// update-ca-certificates, apt-config and chronyd are those of its packages and read what was
// written. The system is made once, of packages from the mirror, kept below MUSTER_CACHE, and
// changed in an overlay.
#include "agent/tasks/host_settings.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"
#include "wire/host_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::minutes kBootstrapLimit{8};

Result<fs::path> keptSystem() {
  const char* cache = ::getenv("MUSTER_CACHE");
  const char* home = ::getenv("HOME");
  const auto kept =
      (cache != nullptr ? fs::path(cache)
                        : fs::path(home != nullptr ? home : "/root") / ".cache/muster") /
      "chroots/bookworm-host";
  std::error_code error;
  if (fs::exists(kept / "etc/os-release", error)) return kept;
  const fs::path making = kept.string() + ".making";
  fs::remove_all(making, error);
  TRY_OK(io::makeDirs(kept.parent_path()));
  io::Command command{
      .program = "unshare",
      .args = {"--mount", "mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory",
               "--include=chrony,openssh-server,sudo,ca-certificates,passwd", "bookworm",
               making.string(), "http://deb.debian.org/debian"}};
  command.timeout = kBootstrapLimit;
  TRY_OK(io::runChecked(command));
  fs::rename(making, kept, error);
  if (error) return fail(ErrorCode::Internal, error.message());
  return kept;
}

/// Everything in the system's own root; but systemd, which does not run there, only notes what it
/// is told, and starts chronyd when it is told to.
class InChroot final : public io::ProcessRunner {
 public:
  explicit InChroot(fs::path root) : root_(std::move(root)) {}
  Async<io::ProcessExit> run(io::Command command) override {
    if (command.program == "systemctl") {
      told_.push_back(fmt::format("{}", fmt::join(command.args, " ")));
      if (told_.back() == "restart chrony") startClock();
      io::ProcessExit done;
      co_return done;
    }
    for (auto& arg : command.args)
      if (arg.starts_with(root_.string())) arg = arg.substr(root_.string().size());
    command.args.insert(command.args.begin(), {root_.string(), command.program});
    command.program = "chroot";
    co_return co_await real_->run(std::move(command));
  }
  Result<std::unique_ptr<io::Child>> start(io::Command, fs::path) override { std::abort(); }
  Result<pid_t> startDetached(io::Command, fs::path) override { std::abort(); }

  std::vector<std::string> told_;

 private:
  /// Without control of this machine's clock, and without sockets in its network.
  void startClock() {
    clock_.reset();
    io::Command command{.program = "chroot",
                        .args = {root_.string(), "chronyd", "-d", "-x", "-u", "root"}};
    auto started = real_->start(command, root_ / "var/log/chronyd.log");
    ASSERT_TRUE(started) << started.error().str();
    clock_ = std::move(*started);
  }
  fs::path root_;
  std::unique_ptr<io::ProcessRunner> real_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> clock_;
};

class HostSettingsSystem : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "chroot needs root";
    const auto& system = kept();
    if (!system) GTEST_SKIP() << "no Debian system: " << system.error().str();
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      GTEST_SKIP() << "no namespaces of its own";
    ASSERT_TRUE(io::makeDirs(root_));
    const auto changes = folder_ / "changes";
    ASSERT_TRUE(io::makeDirs(changes));
    ASSERT_EQ(::mount("tmpfs", changes.c_str(), "tmpfs", 0, nullptr), 0);
    ASSERT_TRUE(io::makeDirs(changes / "upper"));
    ASSERT_TRUE(io::makeDirs(changes / "work"));
    const auto options = fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work",
                                     system->string(), changes.string(), changes.string());
    if (::mount("overlay", root_.c_str(), "overlay", 0, options.c_str()) != 0)
      GTEST_SKIP() << "no overlay";
    ASSERT_EQ(::mount("/dev", (root_ / "dev").c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_TRUE(io::makeDirs(root_ / "run/sshd"));
    ASSERT_TRUE(io::runChecked({.program = "ip", .args = {"link", "set", "lo", "up"}}));
    processes_ = std::make_unique<InChroot>(root_);
  }
  void TearDown() override {
    processes_.reset();
    for (const auto& place : {root_ / "dev", root_, folder_ / "changes"})
      ::umount2(place.c_str(), MNT_DETACH);
  }
  /// The packages come by the network, which a namespace of its own does not have.
  static const Result<fs::path>& kept() {
    static const auto system = keptSystem();
    return system;
  }
  TaskTools tools() { return {root_, "", *processes_, workers_, clock_, "muster-agent", {}}; }
  Result<void> apply(const std::optional<wire::HostSettings>& settings) {
    const auto file = root_ / "etc/muster/host.d/site.json";
    if (!settings) {
      fs::remove(file);
    } else {
      TRY_OK(io::makeDirs(file.parent_path(), 0700));
      TRY_OK(io::writeFileAtomic(file, wire::toJson(*settings), 0600));
    }
    return test::runAsync(context_, applyHostSettings(tools(), "site"), std::chrono::seconds(120));
  }
  std::string probe() {
    std::string out;
    auto work = [&]() -> Async<void> {
      out = co_await hostProbe(tools(), "site");
      co_return Result<void>();
    };
    (void)test::runAsync(context_, work(), std::chrono::seconds(60));
    return out;
  }
  /// chronyd needs a moment until it listens to chronyc.
  std::string settled() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto seen = probe();
    while (seen.find("chronyd does not answer") != std::string::npos &&
           std::chrono::steady_clock::now() < until)
      seen = probe();
    return seen;
  }
  std::string inside(std::vector<std::string> words) {
    words.insert(words.begin(), root_.string());
    const auto done = io::runChecked({.program = "chroot", .args = std::move(words)});
    return done ? *done : done.error().str();
  }
  static std::string certificate(const std::string& name) {
    test::TempFolder folder;
    const auto pem = (folder / "ca.pem").string();
    EXPECT_TRUE(
        io::runChecked({.program = "openssl",
                        .args = {"req", "-x509", "-newkey", "ec", "-pkeyopt",
                                 "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "/dev/null",
                                 "-subj", "/CN=" + name, "-days", "9", "-out", pem}}));
    return io::readFile(pem).value_or("");
  }

  test::TempFolder folder_;
  fs::path root_ = folder_ / "root";
  std::unique_ptr<InChroot> processes_;
  Workers workers_{1};
  FakeClock clock_;
  asio::io_context context_;
};

// `openssl passwd -6 -salt saltsalt x`
constexpr const char* kHash =
    "$6$saltsalt$"
    "8RWsOfwR6M6PpnoeQiEiWzNTPo1f0HjVYjDnLZhGx16aBFRkeqiHAzfXP/LgrOWMBMXqiU2pLrXsSOHNUyUm91";
constexpr const char* kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJkYX2YlV1cXl2OcZ8v1R2X8rTq0Yt0m5mJbJ2m9y1aB alice";

TEST_F(HostSettingsSystem, whoActsByThemSaysThatTheyAreInForce) {
  wire::HostSettings settings;
  settings.time_servers = {"127.0.0.9", "ntp.invalid", "fd00::1"};
  settings.authorities = {
      {"one", certificate("muster test one")},
      {"two", certificate("muster test two") + certificate("muster test three")}};
  settings.http_proxy = "http://10.20.0.3:3128";
  settings.no_proxy = {"10.20.0.1", ".example.com", "10.0.0.0/8"};
  settings.users = {
      {"alice", 2001, {kKey}, {"video", "gpu"}, "/bin/sh", wire::SudoRight::Password, kHash},
      {.name = "bob", .keys = {kKey}, .sudo = wire::SudoRight::Free}};
  settings.ssh_user_authorities = {kKey};
  const auto done = apply(settings);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(settled(), "as-declared");

  EXPECT_THAT(inside({"getent", "passwd", "alice"}),
              HasSubstr("alice:x:2001:2001::/home/alice:/bin/sh"));
  EXPECT_THAT(inside({"getent", "shadow", "alice"}), HasSubstr(kHash));
  EXPECT_THAT(inside({"getent", "shadow", "bob"}), HasSubstr("bob:*:"));
  EXPECT_THAT(inside({"id", "-nG", "alice"}), AllOf(HasSubstr("video"), HasSubstr("gpu")));
  EXPECT_TRUE(fs::is_directory(root_ / "home/alice"));
  EXPECT_THAT(inside({"visudo", "-c"}), HasSubstr("/etc/sudoers.d/90-muster-site: parsed OK"));
  EXPECT_THAT(inside({"sudo", "-l", "-U", "bob"}), HasSubstr("NOPASSWD: ALL"));
  EXPECT_THAT(inside({"sshd", "-T"}),
              HasSubstr("trustedusercakeys /etc/muster/ssh/site-user-authorities.pub"));
  EXPECT_THAT(inside({"apt-config", "dump", "Acquire::http::Proxy"}),
              AllOf(HasSubstr("Acquire::http::Proxy \"http://10.20.0.3:3128\""),
                    HasSubstr("Acquire::http::Proxy::10.20.0.1 \"DIRECT\"")));
  EXPECT_THAT(
      inside({"sh", "-c", ". /etc/profile.d/90-muster-proxy.sh; echo $http_proxy $NO_PROXY"}),
      HasSubstr("http://10.20.0.3:3128 10.20.0.1,.example.com,10.0.0.0/8"));
  // Whoever asks the system's trust store accepts what the site's authority signed.
  const auto pem = folder_ / "three.pem";
  ASSERT_TRUE(io::writeFileAtomic(
      pem, settings.authorities["two"].substr(settings.authorities["two"].rfind("-----BEGIN"))));
  EXPECT_TRUE(io::runChecked(
      {.program = "openssl",
       .args = {"verify", "-CAfile", (root_ / "etc/ssl/certs/ca-certificates.crt").string(),
                pem.string()}}));

  EXPECT_TRUE(apply(settings)) << "a second run";
  EXPECT_EQ(settled(), "as-declared");
}

TEST_F(HostSettingsSystem, everyChangeBehindItsBackIsSeen) {
  wire::HostSettings settings;
  settings.time_servers = {"127.0.0.9"};
  settings.authorities = {{"one", certificate("muster test one")}};
  settings.users = {{"alice", 2001, {kKey}, {"video"}, "/bin/sh", wire::SudoRight::Free, kHash}};
  settings.ssh_user_authorities = {kKey};
  ASSERT_TRUE(apply(settings));
  ASSERT_EQ(settled(), "as-declared");
  const auto after = [&](const std::string& command) {
    (void)inside({"sh", "-c", command});
    const auto seen = settled();
    EXPECT_TRUE(apply(settings)) << command;
    EXPECT_EQ(settled(), "as-declared") << "it is put back after " << command;
    return seen;
  };
  EXPECT_EQ(after("usermod --shell /bin/bash alice"), "drift:user alice shell");
  EXPECT_EQ(after("usermod --groups '' alice"), "drift:user alice groups");
  EXPECT_EQ(after("echo 'alice:*' | chpasswd -e"), "drift:user alice password");
  EXPECT_EQ(after("usermod --lock --expiredate 1 alice"), "drift:user alice password");
  EXPECT_EQ(after("userdel alice"), "drift:user alice is missing");
  EXPECT_EQ(
      after("sed -i '/muster/d' /etc/ca-certificates.conf; rm /usr/local/share/ca-certificates/*;"
            " update-ca-certificates"),
      "drift:/usr/local/share/ca-certificates/muster-site-one-1.crt");
  EXPECT_EQ(after(": > /etc/ssl/certs/ca-certificates.crt"), "drift:authority one");
  EXPECT_EQ(after("chronyc delete 127.0.0.9"), "drift:time servers");
  EXPECT_EQ(after("chmod 644 /etc/sudoers.d/90-muster-site"),
            "drift:/etc/sudoers.d/90-muster-site");
  (void)inside({"sh", "-c", "echo TrustedUserCAKeys none > /etc/ssh/sshd_config.d/00-other.conf"});
  ASSERT_TRUE(apply(settings));
  EXPECT_EQ(settled(), "drift:sshd TrustedUserCAKeys")
      << "a file that sshd reads first wins, and is seen as long as it lies there";
}

TEST_F(HostSettingsSystem, aUserThatLeavesIsLockedAndKeepsWhatIsTheirs) {
  wire::HostSettings settings;
  settings.users = {{.name = "alice", .uid = 2001, .keys = {kKey}}};
  ASSERT_TRUE(apply(settings));
  (void)inside({"sh", "-c", "echo mine > /home/alice/work"});
  ASSERT_TRUE(apply(std::nullopt));
  EXPECT_THAT(inside({"getent", "shadow", "alice"}), HasSubstr("alice:!"));
  EXPECT_THAT(inside({"chage", "-l", "alice"}), HasSubstr("Jan 02, 1970"));
  EXPECT_TRUE(fs::exists(root_ / "home/alice/work"));
  EXPECT_FALSE(fs::exists(root_ / "etc/muster/ssh/keys/alice"));
  EXPECT_THAT(inside({"sshd", "-T"}), Not(HasSubstr("/etc/muster")));
  ASSERT_TRUE(apply(settings)) << "and comes back";
  EXPECT_EQ(settled(), "as-declared");
}

}  // namespace
}  // namespace muster::agent
