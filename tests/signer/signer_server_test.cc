// SPDX-License-Identifier: Apache-2.0
// The signer attacked over its socket: who may not ask, half and huge requests, floods, a disk that
// is full, kills, a second one beside it.
#include "signer/signer_server.h"

#include "base/io/crypto.h"
#include "base/io/json_lines.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "tests/signer/signer_site.h"

#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <set>

namespace muster::signer {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::HasSubstr;

class SignerServerTest : public ::testing::Test {
 protected:
  SignerServerTest() : listening_(listenAt(site_.socket())), options_(site_.options()) {}
  std::unique_ptr<RunningSigner> server() {
    return std::make_unique<RunningSigner>(listening_.get(), options_);
  }
  bool works() {
    const auto done = site_.client().sign(Statement::NodeCertificate, site_.certificate());
    EXPECT_TRUE(done) << done.error().str();
    return done.has_value();
  }
  io::Fd dialed() const {
    auto fd = io::dialUnixSocket(site_.socket());
    EXPECT_TRUE(fd) << fd.error().str();
    return fd ? std::move(*fd) : io::Fd();
  }
  /// What is answered to a line as it is.
  std::string answerTo(const std::string& line) const {
    const auto fd = dialed();
    for (std::string_view left = line; !left.empty();) {
      const auto sent = ::send(fd.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) continue;
      if (sent < 0) break;
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
    return io::LineReader(fd.get(), 1 << 20).next(20s).value_or("");
  }
  CertificateOrder order(const std::string& name) {
    if (request_.empty()) request_ = site_.request();
    return {CertificateKind::Agent, name, {}, 24h, request_};
  }

  SignerSite site_;
  io::Fd listening_;
  SignerServerOptions options_;
  std::string request_;
};

TEST_F(SignerServerTest, whoMayNotAskIsRefusedAndLearnsNothing) {
  options_.asker = ::geteuid() + 1;
  const auto running = server();
  for (const auto* line : {"{\"public\": true}\n", "{}\n"})
    EXPECT_THAT(answerTo(line), HasSubstr("may not ask"));
  const auto refused = site_.client().certify(order("gpu001"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied) << refused.error().str();
  EXPECT_EQ(site_.log(), "");
}

TEST_F(SignerServerTest, aRealOtherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  options_.asker = 0;
  const auto running = server();
  std::filesystem::permissions(site_.folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(site_.socket(), std::filesystem::perms::all);
  const auto said =
      shell("/",
            "setpriv --reuid 65534 --regid 65534 --clear-groups perl -MIO::Socket::UNIX -e "
            "'$SIG{PIPE} = \"IGNORE\"; my $l = IO::Socket::UNIX->new(Peer => \"" +
                site_.socket().string() +
                "\") or die; print $l \"{\\\"public\\\": true}\\n\"; print <$l>'");
  EXPECT_THAT(said, HasSubstr("user 65534 may not ask"));
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, whoIsRefusedReadsWhyWhateverHeSendsBefore) {
  options_.asker = ::geteuid() + 1;
  const auto running = server();
  for (int round = 0; round < 20; ++round) {
    const auto fd = dialed();
    // Said at once, before anything was sent; and what is sent afterwards breaks no pipe.
    io::LineReader lines(fd.get(), 1 << 20);
    if (round % 2 == 0) EXPECT_THAT(lines.next(20s).value_or(""), HasSubstr("may not ask"));
    EXPECT_EQ(::send(fd.get(), "{\"public\": true}\n", 17, MSG_NOSIGNAL), 17);
    if (round % 2 == 1) EXPECT_THAT(lines.next(20s).value_or(""), HasSubstr("may not ask"));
    char byte = 0;
    pollfd wait{fd.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&wait, 1, 20'000), 1);
    EXPECT_EQ(::read(fd.get(), &byte, 1), 0) << std::strerror(errno) << ", not an end";
  }
}

TEST_F(SignerServerTest, whoIsRefusedAndStaysHoldsNobodyUp) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  options_.asker = 0;
  const auto running = server();
  const auto& folder = site_.folder.path();
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  std::filesystem::permissions(site_.socket(), std::filesystem::perms::all);
  const io::Command stayer{
      "setpriv",
      {"--reuid", "65534", "--regid", "65534", "--clear-groups", "perl", "-MIO::Socket::UNIX", "-e",
       "$SIG{PIPE} = 'IGNORE'; my @all = map { IO::Socket::UNIX->new(Peer => '" +
           site_.socket().string() +
           "') } 1 .. 60; for my $l (@all) { print $l 'x' x 4096 if $l } $| = 1; print scalar "
           "readline($all[59])"}};
  const auto said = io::runBlocking(stayer);
  ASSERT_TRUE(said) << said.error().str();
  EXPECT_THAT(said->out, HasSubstr("may not ask")) << said->err;
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, aSocketOfSomebodyElseIsNotBelieved) {
  const auto running = server();
  const SignerClient client({site_.socket(), {::geteuid() + 7}});
  const auto refused = client.publicHalves();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_FALSE(refused.error().has(SignerProblem::Away));
}

TEST_F(SignerServerTest, whatItDoesNotKnowIsRefused) {
  const auto running = server();
  for (const auto* line :
       {"",
        "x",
        "null",
        "7",
        "[]",
        "{}",
        R"({"sign":"node-certificate"})",
        R"({"sign":"anything","text":"x"})",
        R"({"sign":"node-certificate","text":7})",
        R"({"sign":"node-certificate","text":"x","key":"ca"})",
        R"({"sign":7,"text":"x"})",
        R"({"certify":"ca","name":"x","names":[],"hours":1,"request":"x"})",
        R"({"certify":"agent","name":"x","names":[7],"hours":1,"request":"x"})",
        R"({"certify":"agent","name":"x","names":{},"hours":1,"request":"x"})",
        R"({"certify":"agent","name":"x","names":[],"hours":1.5,"request":"x"})",
        R"({"certify":"agent","name":"x","names":[],"hours":1,"request":"x","ca":"","more":true})",
        R"({"certify":"agent","name":"x","hours":99999999999999999999})",
        R"({"public":false})",
        R"({"public":true,"private":true})",
        R"({"rotate":"ca"})",
        R"({"rotate":true})",
        R"({"rotate":"certificates","now":true})",
        R"({"replace_lost":"images"})",
        R"({"export":"certificates"})",
        R"({"public":true,"public":true})"}) {
    const auto said = answerTo(std::string(line) + "\n");
    EXPECT_THAT(said, HasSubstr(R"("error")")) << line;
  }
  EXPECT_EQ(site_.log(), "") << "nothing was signed";
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, deepAndHugeRequestsEnd) {
  const auto running = server();
  EXPECT_THAT(answerTo(std::string(1'000'000, '[') + "\n"), HasSubstr("error"));
  EXPECT_THAT(answerTo(std::string(R"({"sign":"revocation-list","text":")") +
                       std::string(13 << 20, 'x') + "\"}\n"),
              HasSubstr("error"));
  std::string endless(30 << 20, '{');
  EXPECT_THAT(answerTo(endless), HasSubstr("bytes")) << "without an end of its line";
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, halfRequestsHoldNobodyUp) {
  options_.patience = 300ms;
  const auto running = server();
  std::vector<io::Fd> half;
  for (std::size_t i = 0; i < 2 * kMaxSignerConnections; ++i) {
    half.push_back(dialed());
    ASSERT_EQ(::send(half.back().get(), "{\"sign\":", 8, MSG_NOSIGNAL), 8);
  }
  EXPECT_TRUE(works()) << "while they all stay";
  EXPECT_EQ(io::LineReader(half.front().get(), 100).next(20s).error().code(),
            ErrorCode::Unavailable)
      << "they are closed";
}

TEST_F(SignerServerTest, whoDoesNotReadHoldsNobodyUp) {
  const auto running = server();
  std::vector<io::Fd> deaf;
  for (int i = 0; i < 8; ++i) {
    deaf.push_back(dialed());
    ASSERT_GT(::send(deaf.back().get(), "{\"public\":true}\n", 16, MSG_NOSIGNAL), 0);
  }
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, moreThanItsRateIsRefusedAndSaysSo) {
  options_.certificates = {3, 0};
  const auto running = server();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(site_.client().certify(order("gpu001")));
  const auto refused = site_.client().certify(order("gpu001"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(refused.error().has(SignerProblem::Busy));
  EXPECT_TRUE(refused.error().canRetry());
  EXPECT_TRUE(works()) << "statements have a rate of their own";
}

TEST_F(SignerServerTest, eachSignatureIsInTheLogBeforeItIsGivenOut) {
  const auto running = server();
  ASSERT_TRUE(works());
  EXPECT_THAT(site_.log(), HasSubstr("node-certificate node=gpu001 expires="));
  EXPECT_THAT(site_.log(), HasSubstr("sha256=" + io::sha256Hex(site_.certificate())));
  EXPECT_THAT(site_.log(), HasSubstr(fmt::format("uid={} pid={}", ::geteuid(), ::getpid())));
  const auto pem = site_.client().certify(order("gpu002"));
  ASSERT_TRUE(pem);
  EXPECT_THAT(site_.log(), HasSubstr("certificate kind=agent name=gpu002"));
  EXPECT_THAT(site_.log(), HasSubstr(io::describeCertificate(*pem)->sha256_fingerprint));
}

TEST_F(SignerServerTest, onAFullDiskNothingIsSigned) {
  const auto running = server();
  ASSERT_TRUE(works());
  const auto request = order("gpu001");
  const auto before = site_.log();
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 20, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto statement = site_.client().sign(Statement::NodeCertificate, site_.certificate());
  const auto certificate = site_.client().certify(request);
  const auto rotated = site_.client().rotate();
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, old);
  for (const auto& code : {statement ? ErrorCode::Internal : statement.error().code(),
                           certificate ? ErrorCode::Internal : certificate.error().code(),
                           rotated ? ErrorCode::Internal : rotated.error().code()})
    EXPECT_EQ(code, ErrorCode::Unavailable);
  EXPECT_EQ(site_.log(), before);
  EXPECT_EQ(loadSigningKey(site_.own(), kCertificatesKey)->id(), site_.key) << "not rotated";
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, rotatesItsKeyAndKeepsThePrivateHalf) {
  const auto running = server();
  ASSERT_TRUE(works());
  const auto started = site_.client().rotate();
  ASSERT_TRUE(started) << started.error().str();
  const auto ids = io::publicKeyIds(started->certificates);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], site_.key);
  EXPECT_EQ(ids[1], site_.key);
  EXPECT_EQ(site_.client().sign(Statement::NodeCertificate, site_.certificate()).error().code(),
            ErrorCode::Conflict)
      << "the certificate names the key before";
  const auto old = site_.key;
  site_.key = ids[0];
  ASSERT_TRUE(works());
  EXPECT_EQ(site_.client().rotate().error().code(), ErrorCode::Conflict);
  const auto finished = site_.client().finish();
  ASSERT_TRUE(finished);
  EXPECT_THAT(io::publicKeyIds(finished->certificates), ::testing::ElementsAre(ids[0]));
  EXPECT_EQ(site_.client().finish().error().code(), ErrorCode::NotFound);
  EXPECT_THAT(site_.log(), HasSubstr("rotate certificates begins\n"));
  EXPECT_THAT(site_.log(), HasSubstr("rotate certificates done key=" + ids[0] + "\n"));
  EXPECT_THAT(site_.log(), HasSubstr("finish certificates done key=" + ids[0] + "\n"));
}

TEST_F(SignerServerTest, aChangeThatCannotBeginIsNotCountedAndNotInTheLog) {
  options_.rotations = {3, 0};
  const auto running = server();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(site_.client().finish().error().code(), ErrorCode::NotFound);
    EXPECT_EQ(site_.client().replaceLost().error().code(), ErrorCode::Conflict);
  }
  EXPECT_EQ(site_.log(), "");
  ASSERT_TRUE(site_.client().rotate());
  const auto before = site_.log();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(site_.client().rotate().error().code(), ErrorCode::Conflict);
  EXPECT_EQ(site_.log(), before);
  ASSERT_TRUE(site_.client().finish());
  ASSERT_TRUE(site_.client().rotate()) << "the third that was done";
  const auto refused = site_.client().finish();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().has(SignerProblem::Busy)) << refused.error().str();
}

TEST_F(SignerServerTest, aChangeThatFailsSaysSoInTheLog) {
  const auto running = server();
  ASSERT_TRUE(works());
  std::ofstream(site_.own() / "keys/retired") << "a file in the folder's place";
  ASSERT_TRUE(site_.client().rotate());
  EXPECT_FALSE(site_.client().finish());
  EXPECT_THAT(site_.log(), HasSubstr("finish certificates begins\n"));
  EXPECT_THAT(site_.log(), HasSubstr("finish certificates failed: "));
}

TEST_F(SignerServerTest, keysThatAreLinksOrOpenAreNotUsed) {
  const auto running = server();
  ASSERT_TRUE(works());
  namespace fs = std::filesystem;
  for (const auto* file : {"keys/signing.pem", "ca/ca.key"}) {
    const auto path = site_.own() / file;
    for (const auto mode : {fs::perms(0640), fs::perms(0604), fs::perms(0620)}) {
      fs::permissions(path, mode);
      const auto refused = site_.client().sign(Statement::NodeCertificate, site_.certificate());
      ASSERT_FALSE(refused) << path;
      EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
      EXPECT_THAT(refused.error().str(), HasSubstr("chmod 600 " + path.string()));
    }
    fs::permissions(path, fs::perms(0600));
    fs::rename(path, site_.folder / "elsewhere");
    fs::create_symlink(site_.folder / "elsewhere", path);
    const auto refused = site_.client().sign(Statement::NodeCertificate, site_.certificate());
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
    EXPECT_THAT(refused.error().str(), HasSubstr(path.string() + " is a link"));
    fs::remove(path);
    fs::rename(site_.folder / "elsewhere", path);
    EXPECT_TRUE(works());
  }
}

TEST_F(SignerServerTest, anOverrideIsNamedInTheLog) {
  const auto running = server();
  ASSERT_TRUE(site_.client().sign(
      Statement::NodeCertificate,
      replaced(
          site_.certificate(), R"("proven_at")",
          R"x("override":{"by":"anna (uid 1000)","reason":"demo on \"friday\""},"proven_at")x")));
  EXPECT_THAT(site_.log(),
              HasSubstr(R"x( override="anna (uid 1000)" reason="demo on \"friday\"" sha256=)x"));
}

TEST_F(SignerServerTest, keysThatWerePutThereMeanwhileAreRead) {
  const auto running = server();
  ASSERT_TRUE(works());
  test::TempFolder other;
  site_.key = loadSigningKey(other.path(), kCertificatesKey)->id();
  std::filesystem::rename(other / "keys/signing.pem", site_.own() / "keys/signing.pem");
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, aLostKeyIsNotMadeAnewByItself) {
  const auto running = server();
  ASSERT_TRUE(works());
  std::filesystem::remove(site_.own() / "ca/ca.key");
  const auto refused = site_.client().sign(Statement::NodeCertificate, site_.certificate());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("was here"));
  EXPECT_FALSE(std::filesystem::exists(site_.own() / "ca/ca.key"));
}

TEST_F(SignerServerTest, awayIsSaidAsAway) {
  listening_ = io::Fd();
  const auto refused = site_.client().publicHalves();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().has(SignerProblem::Away));
  EXPECT_TRUE(refused.error().canRetry());
  EXPECT_THAT(refused.error().str(), HasSubstr("systemctl start muster-signer.socket"));
}

TEST_F(SignerServerTest, oneThatNeverAnswersIsAway) {
  const SignerClient client({site_.socket(), {::geteuid()}, 200ms});  // nobody accepts
  const auto refused = client.publicHalves();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().has(SignerProblem::Away)) << refused.error().str();
  const auto running = server();
  EXPECT_THAT(client.publicHalves().error().str(), HasSubstr("no answer a moment ago"))
      << "who asks for many nodes is not held up for each";
  EXPECT_TRUE(works()) << "others ask";
}

/// Killed while it is being asked; each round at another point.
TEST_F(SignerServerTest, killedBetweenRequestAndAnswerItUsesNoSerialTwice) {
  constexpr int kRounds = 24;
  std::set<std::string> serials;
  std::vector<std::string> given;
  const auto request = order("gpu001");
  for (int round = 0; round < kRounds; ++round) {
    const auto pid = ::fork();
    if (pid == 0) {
      (void)serveSigner(listening_.get(), options_);
      ::_exit(0);
    }
    ASSERT_GT(pid, 0);
    for (int i = 0; i < round % 4; ++i) {
      const auto pem = site_.client().certify(request);
      ASSERT_TRUE(pem) << pem.error().str();
      given.push_back(*pem);
    }
    const auto fd = dialed();
    ASSERT_TRUE(io::sendJsonLine(fd.get(),
                                 {{"certify", "agent"},
                                  {"name", "gpu001"},
                                  {"names", nlohmann::json::array()},
                                  {"hours", 1},
                                  {"request", request.csr_pem},
                                  {"ca", ""}},
                                 1s));
    ::kill(pid, SIGKILL);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    // One that was not heard yet waits in the socket's queue, and is the next one's.
    if (const auto line = io::LineReader(fd.get(), 1 << 20).next(std::chrono::steady_clock::now()))
      given.push_back(textOf(*parseJson(*line, kServerJson), "certificate"));
  }
  ASSERT_GE(given.size(), 36u);
  const auto log = site_.log();
  for (const auto& pem : given) {
    std::ofstream(site_.folder / "one.crt") << pem;
    EXPECT_TRUE(
        serials.insert(shell(site_.folder.path(), "openssl x509 -in one.crt -noout -serial"))
            .second)
        << "a serial twice";
    EXPECT_THAT(log, HasSubstr(io::describeCertificate(pem)->sha256_fingerprint))
        << "given out and not in the log";
  }
  EXPECT_TRUE(log.ends_with('\n'));
  const auto running = server();
  EXPECT_TRUE(works());
}

TEST_F(SignerServerTest, twoBesideEachOtherLoseNothing) {
  const auto request = order("gpu001");
  std::vector<std::string> given;
  {
    const auto first = server(), second = server();
    std::mutex guard;
    std::vector<std::jthread> askers;
    for (int asker = 0; asker < 4; ++asker)
      askers.emplace_back([&] {
        for (int i = 0; i < 25; ++i) {
          const auto pem = site_.client().certify(request);
          ASSERT_TRUE(pem) << pem.error().str();
          const std::lock_guard lock(guard);
          given.push_back(io::describeCertificate(*pem)->sha256_fingerprint);
        }
      });
  }
  const auto log = site_.log();
  EXPECT_EQ(std::ranges::count(log, '\n'), 100);
  EXPECT_EQ(std::set(given.begin(), given.end()).size(), 100u);
  for (const auto& each : given) EXPECT_THAT(log, HasSubstr(each));
}

}  // namespace
}  // namespace muster::signer
