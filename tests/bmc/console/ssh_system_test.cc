// SPDX-License-Identifier: Apache-2.0
// Consoles by SSH for real: OpenSSH's client and sshpass to dropbear, the place told by an emulated
// BMC's Redfish over HTTPS.
#include "bmc/console/console_recorder.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/bmc/console/ssh_rig.h"
#include "tests/bmc/values_store.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>

#include <fstream>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class SshTest : public testing::Test {
 protected:
  using SshRig = test::SshRig;
  void SetUp() override {
    if (::geteuid() != 0 || !io::runChecked({.program = "unshare", .args = {"-m", "true"}}))
      GTEST_SKIP() << "needs root and a mount namespace for an account of its own";
  }
  SshRig& serve(std::string_view cli = {}, std::string more = {}) {
    rig_.emplace(cli, std::move(more));
    EXPECT_TRUE(rig_->running()) << "dropbear (Debian: dropbear-bin) does not run: "
                                 << io::readFile(rig_->log()).value_or("");
    return *rig_;
  }
  std::unique_ptr<ConsoleSource> source(SshConsoleEndpoint place, std::string password = "secret") {
    SshOptions options{"127.0.0.1", NodeName("gpu001"), {}, place, {}, {}, {}, folder_.path()};
    options.account.username = "admin";
    options.account.password = [password] { return Result<Secret>(Secret(password)); };
    options.account.may_try = [this](const Secret&) -> Result<void> {
      return refusals_ > 0 ? fail(ErrorCode::Denied, "this password was refused before")
                           : Result<void>();
    };
    options.account.refused = [this](const Secret&) { ++refusals_; };
    options.host_keys = [this] { return Result<std::string>(host_keys_); };
    options.keep_host_keys = [this](std::string lines) {
      host_keys_ = std::move(lines);
      return Result<void>();
    };
    if (ask_) options.ask = ask_;
    return makeSshConsole(std::move(options), clock_);
  }
  Result<std::unique_ptr<io::Dialogue>> open(ConsoleSource& at) {
    return test::runAsync(io_, at.open(), 60s);
  }
  std::string readUntil(io::Dialogue& line, const std::string& what) {
    std::string heard;
    while (heard.find(what) == std::string::npos) {
      auto piece = test::runAsync(io_, line.read(), 20s);
      if (!piece || piece->empty()) return heard + " and then the line ended";
      heard += *piece;
    }
    return heard;
  }
  std::string hears(std::size_t count) {
    return test::runAsync(io_, rig_->machine().hears(count), 20s).value_or("nothing");
  }

  test::TempFolder folder_;
  std::optional<SshRig> rig_;
  asio::io_context io_;
  SystemClock clock_;
  std::function<Async<SshConsoleEndpoint>()> ask_;
  std::string host_keys_;
  int refusals_ = 0;
};

TEST_F(SshTest, bytesGoBothWaysWhereTheSessionIsTheConsole) {
  auto& rig = serve();
  auto at = source({rig.port(), {}});
  auto line = open(*at);
  ASSERT_TRUE(line) << line.error().str();
  rig.machine().says("login: ");
  EXPECT_THAT(readUntil(**line, "login: "), HasSubstr("login: "));
  ASSERT_TRUE(test::runAsync(io_, (*line)->write("root\r")));
  EXPECT_EQ(hears(5), "root\r");
  // What ends a session at a keyboard is typed to the machine like all else.
  ASSERT_TRUE(test::runAsync(io_, (*line)->write("\r~.\x03\x1d~?")));
  EXPECT_EQ(hears(7), "\r~.\x03\x1d~?");
  EXPECT_THAT(host_keys_, HasSubstr("gpu001 ssh-ed25519 "));
}

TEST_F(SshTest, aCommandLineIsPassedToTheConsole) {
  auto& rig = serve("cd system1/sol1; start");
  auto at = source({rig.port(), "cd system1/sol1; start"});
  auto line = open(*at);
  ASSERT_TRUE(line) << line.error().str();
  rig.machine().says("login: ");
  EXPECT_THAT(readUntil(**line, "login: "), HasSubstr("-> "))
      << "what the BMC said before is shown as well";
  ASSERT_TRUE(test::runAsync(io_, (*line)->write("root\r")));
  EXPECT_EQ(hears(5), "root\r");
}

TEST_F(SshTest, aSessionThatEndsBeforeThePromptSaysSo) {
  auto& rig = serve("start");
  std::ofstream(rig.folder() / "enter") << "#!/bin/sh\necho 'No more sessions are available.'\n";
  auto at = source({rig.port(), "start"});
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(line.error().str(), HasSubstr("No more sessions are available"));
}

TEST_F(SshTest, aWrongPasswordIsSentOnceAndNeverAgain) {
  auto& rig = serve();
  auto at = source({rig.port(), {}}, "wrong");
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), ErrorCode::Denied) << line.error().str();
  EXPECT_THAT(line.error().str(), HasSubstr("does not take the password"));
  EXPECT_THAT(line.error().str(), Not(HasSubstr("wrong")));
  EXPECT_EQ(refusals_, 1);
  EXPECT_EQ(rig.count("Bad password attempt"), 1u);
  EXPECT_FALSE(open(*at));
  EXPECT_EQ(rig.count("Bad password attempt"), 1u) << "accounts are locked";
}

TEST_F(SshTest, aServerThatAllowsASingleTryIsNotTriedOverAndOver) {
  auto& rig = serve({}, "-T 1");  // it ends the session without a word
  auto at = source({rig.port(), {}}, "wrong");
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), ErrorCode::Denied) << line.error().str();
  EXPECT_THAT(line.error().str(), Not(HasSubstr("SSHPASS")));
  EXPECT_EQ(rig.count("Bad password attempt"), 1u);
}

/// What ssh and sshpass were seen to say with servers that cannot be had here.
struct Said {
  const char* text;
  ErrorCode code;
  int refusals;
};
class SaidTest : public SshTest, public testing::WithParamInterface<Said> {};

TEST_P(SaidTest, tellsARefusedPasswordFromALineThatBroke) {
  const std::string path = std::getenv("PATH");
  ASSERT_TRUE(io::writeFileAtomic(
      folder_ / "sshpass", fmt::format("#!/bin/sh\nprintf '%b' '{}'\nexit 5\n", GetParam().text),
      0700));
  ::setenv("PATH", (folder_.path().string() + ":" + path).c_str(), 1);
  auto at = source({22, {}}, "secret");
  const auto line = open(*at);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), GetParam().code) << line.error().str();
  EXPECT_EQ(refusals_, GetParam().refusals);
  EXPECT_THAT(line.error().str(), Not(HasSubstr("secret")));
}

INSTANTIATE_TEST_SUITE_P(
    All, SaidTest,
    testing::Values(
        Said{"SSHPASS: detected prompt. Sending password.\\nSSHPASS: read: (admin@bmc) Password: "
             "\\nSSHPASS: detected prompt, again. Wrong password. Terminating.\\n",
             ErrorCode::Denied, 1},
        Said{"SSHPASS: detected prompt. Sending password.\\nReceived disconnect from 10.0.0.1 port "
             "22:2: Too many authentication failures\\n",
             ErrorCode::Denied, 1},
        Said{"SSHPASS: detected prompt. Sending password.\\nadmin@bmc: Permission denied "
             "(publickey).\\n",
             ErrorCode::Denied, 1},
        Said{"SSHPASS: detected prompt. Sending password.\\nSSHPASS: read: secret\\nsecret\\n",
             ErrorCode::Denied, 0},
        Said{"kex_exchange_identification: Connection closed by remote host\\n",
             ErrorCode::Unavailable, 0},
        Said{"", ErrorCode::Unavailable, 0}));

TEST_F(SshTest, aBmcThatWantsAnotherPasswordIsNotToldACommand) {
  auto& rig = serve("start");
  std::ofstream(rig.folder() / "enter")
      << "#!/bin/sh\nprintf 'You are required to change your password.\\nCurrent password: '\nread "
         "-r said\necho \"heard $said\" >&2\n";
  auto at = source({rig.port(), "start"});
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), ErrorCode::Denied);
  EXPECT_THAT(line.error().str(), HasSubstr("another password"));
}

TEST_F(SshTest, hangingUpEndsTheSessionAtOnce) {
  auto& rig = serve();
  auto at = source({rig.port(), {}});
  auto line = open(*at);
  ASSERT_TRUE(line) << line.error().str();
  (*line)->hangUp();
  while (true) {
    const auto piece = test::runAsync(io_, (*line)->read(), 5s);
    ASSERT_TRUE(piece) << "it goes on";
    if (piece->empty()) break;
  }
}

TEST_F(SshTest, aServerThatTakesKeysOnlyIsNoWrongPassword) {
  auto& rig = serve({}, "-s");
  auto at = source({rig.port(), {}});
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_THAT(line.error().str(), HasSubstr("takes no passwords"));
  EXPECT_EQ(refusals_, 0);
}

TEST_F(SshTest, anotherHostKeyGetsNoPassword) {
  auto& rig = serve();
  auto at = source({rig.port(), {}});
  ASSERT_TRUE(open(*at));
  const auto logins = rig.count("Password auth succeeded");
  EXPECT_EQ(logins, 1u);
  rig.stop();
  rig.newHostKey();
  rig.start();
  const auto line = open(*at);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), ErrorCode::Denied);
  EXPECT_THAT(line.error().str(), HasSubstr("muster bmc trust reset gpu001"));
  EXPECT_EQ(rig.count("Password auth succeeded"), logins);
  EXPECT_EQ(refusals_, 0) << "the password was not sent";
  host_keys_.clear();
  EXPECT_TRUE(open(*at)) << "an operator has looked";
}

TEST_F(SshTest, aPlaceWhereNobodyAnswersIsAskedForAgain) {
  auto& rig = serve();
  int asked = 0;
  ask_ = [&]() -> Async<SshConsoleEndpoint> {
    ++asked;
    co_return SshConsoleEndpoint{rig.port(), {}};
  };
  auto at = source({test::freeLoopbackPort(SOCK_STREAM), {}});
  {
    const auto line = open(*at);
    EXPECT_TRUE(line) << line.error().str();
    EXPECT_TRUE(open(*at));
  }
  EXPECT_EQ(asked, 1) << "it is where it was";
  rig.stop();
  EXPECT_FALSE(open(*at)) << "it is not asked for ever";
}

TEST_F(SshTest, theBmcIsAskedOnceWhereItsConsoleIs) {
  auto& rig = serve("start /SP/console");
  Workers workers{2};
  lab::vbmc::FakeMachine machine;
  auto offer = test::virtualBmcOptions(folder_.path());
  offer.serial = lab::vbmc::SerialOffer{rig.port(), "start /SP/console"};
  offer.account = lab::vbmc::Account::make("admin", "secret");
  auto service = *lab::vbmc::RedfishService::make(clock_, workers, machine, std::move(offer));
  io::ServerOptions listener;
  listener.identity = *io::selfSigned("bmc", {"127.0.0.1"});
  auto server = *io::startHttpServer(io_.get_executor(), listener);
  server->addRoutes(service->routes());
  auto cluster = test::clusterWithBmcAt(server->port());
  ::setenv("MUSTER_BMC_TEST_PASSWORD", "secret", 1);
  cluster.profiles["p"].console = inventory::ConsoleSpec{.via = inventory::ConsoleVia::Redfish};
  cluster.profiles["p"].bmc_credential = "bmc";
  test::ValuesStore store;
  auto fleet = makeBmcFleet(cluster, store, clock_, workers);
  const auto find = makeConsoleFactory({cluster, store, clock_, workers, *fleet}, folder_ / "run");
  {
    auto at = find(NodeName("gpu001"));
    auto line = open(*at);
    ASSERT_TRUE(line) << line.error().str();
    rig.machine().says("login: ");
    EXPECT_THAT(readUntil(**line, "login: "), HasSubstr("login: "));
  }
  EXPECT_EQ(store.values["bmc.console.gpu001"], fmt::format("{} start /SP/console", rig.port()));
  EXPECT_THAT(store.values["bmc.ssh.gpu001"], HasSubstr("ssh-ed25519"));
  (void)test::runAsync(io_, fleet->close(), 10s);
  server->stop();  // who knows the place needs no Redfish
  {
    auto at = find(NodeName("gpu001"));
    const auto line = open(*at);
    EXPECT_TRUE(line) << line.error().str();
  }
  ASSERT_TRUE(forgetPin(store, NodeName("gpu001")));
  EXPECT_EQ(store.values["bmc.ssh.gpu001"], "");
  EXPECT_EQ(store.values["bmc.console.gpu001"], "");
}

TEST_F(SshTest, withDeclaredTrustOnlyTheDeclaredHostKeyGetsThePassword) {
  auto& rig = serve("start");
  Workers workers{1};
  auto cluster = test::clusterWithBmcAt(9);  // nobody asks it: the place is declared
  ::setenv("MUSTER_BMC_TEST_PASSWORD", "secret", 1);
  cluster.profiles["p"].console = inventory::ConsoleSpec{
      .via = inventory::ConsoleVia::Redfish, .port = rig.port(), .command = "start"};
  test::ValuesStore store;
  auto fleet = makeBmcFleet(cluster, store, clock_, workers);
  const auto attempt = [&] {
    const auto find =
        makeConsoleFactory({cluster, store, clock_, workers, *fleet}, folder_ / "run");
    auto line = open(*find(NodeName("gpu001")));
    return line ? std::string() : line.error().str();
  };
  (void)attempt();  // first contact
  const auto line = store.values["bmc.ssh.gpu001"];
  ASSERT_THAT(line, HasSubstr("gpu001 ssh-ed25519 "));
  const auto key =
      line.substr(line.find("ssh-ed25519 "), line.find('\n') - line.find("ssh-ed25519 "));
  const auto logins = rig.count("Password auth succeeded");
  ASSERT_EQ(logins, 1u);
  cluster.bmc_trust = inventory::BmcTrustPolicy::Declared;
  EXPECT_THAT(attempt(), HasSubstr("bmc_ssh_key of gpu001")) << "what was met first does not count";
  auto& declared = cluster.nodes.front().bmc.trust->ssh_key;
  declared = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
  EXPECT_THAT(attempt(), HasSubstr("write its new key as bmc_ssh_key of gpu001"));
  EXPECT_EQ(rig.count("Password auth succeeded"), logins);
  EXPECT_EQ(rig.count("Bad password attempt"), 0u);
  declared = key;
  (void)attempt();
  EXPECT_EQ(rig.count("Password auth succeeded"), logins + 1);
}

}  // namespace
}  // namespace muster::bmc
