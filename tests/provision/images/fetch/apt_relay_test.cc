// SPDX-License-Identifier: Apache-2.0
// The method that stands in the build unit: apt's side are pipes, and the fetch unit is played
// here, as one that was taken over could speak, too.
#include "provision/images/fetch/apt_relay.h"

#include "base/io/files.h"
#include "provision/images/fetch/apt_message.h"
#include "provision/images/fetch/fetch_socket.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace muster::provision {
namespace {

using testing::HasSubstr;
constexpr int kLimitMilliseconds = 20'000;  // a guard against hanging only

class AptRelayTest : public testing::Test {
 protected:
  void SetUp() override {
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listening_.get(), 4), 0);
  }
  void TearDown() override {
    to_relay_ = io::Fd();
    if (relay_.joinable()) relay_.join();
  }

  void startRelay(uid_t owner = ::geteuid()) {
    int in[2], out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    to_relay_ = io::Fd(in[1]);
    from_relay_ = io::Fd(out[0]);
    relay_ = std::jthread([this, owner, in_end = in[0], out_end = out[1]] {
      const io::Fd in_fd(in_end), out_fd(out_end);
      done_ = relayAptMethod({.scheme = "https",
                              .socket = socket_,
                              .owner = owner,
                              .in = in_end,
                              .out = out_end,
                              .silence_limit = silence_limit_});
    });
  }
  /// The fetch unit's end, after the request.
  void startSilentUnit() {
    startRelay();
    acceptUnit("{\"apt\":\"https\"}\n");
  }
  void startUnit() {
    startSilentUnit();
    answer("100 Capabilities\nVersion: 1.2\n\n");
    EXPECT_EQ(toldApt().number, apt::kCapabilities);
  }
  void acceptUnit(const std::string& expected) {
    line_ = io::Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(line_.valid());
    unit_.emplace(line_.get());
    std::string request;
    while (request.find('\n') == std::string::npos && !HasFatalFailure()) readUnit(request);
    const auto end = request.find('\n') + 1;
    at_unit_.add(request.substr(end));  // apt may have spoken already
    request.resize(end);
    EXPECT_EQ(request, expected);
  }
  void readUnit(std::string& bytes) {
    pollfd wait{line_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, kLimitMilliseconds), 1);
    const auto more = unit_->receive(bytes);
    ASSERT_TRUE(more && *more);
  }
  AptMessage toldUnit() {
    std::string bytes;
    while (true) {
      const auto message = at_unit_.next();
      if (!message) ADD_FAILURE() << message.error().str();
      if (!message || *message) return message ? **message : AptMessage{};
      bytes.clear();
      readUnit(bytes);
      if (HasFatalFailure()) return {};
      at_unit_.add(bytes);
    }
  }
  void sayAsApt(const std::string& text) {
    ASSERT_EQ(::write(to_relay_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  AptMessage toldApt() {
    while (true) {
      const auto message = at_apt_.next();
      if (!message) ADD_FAILURE() << message.error().str();
      if (!message || *message) return message ? **message : AptMessage{};
      pollfd wait{from_relay_.get(), POLLIN, 0};
      char piece[4096];
      const auto got = ::poll(&wait, 1, kLimitMilliseconds) == 1
                           ? ::read(from_relay_.get(), piece, sizeof piece)
                           : 0;
      if (got <= 0) {
        ADD_FAILURE() << "the relay says nothing";
        return {};
      }
      at_apt_.add({piece, static_cast<std::size_t>(got)});
    }
  }
  void acquire(const std::string& uri, const std::filesystem::path& file) {
    sayAsApt("600 URI Acquire\nURI: " + uri + "\nFilename: " + file.string() + "\n\n");
  }
  /// And the unit has heard of it.
  void ask(const std::string& uri, const std::filesystem::path& file) {
    acquire(uri, file);
    AptMessage told;
    do told = toldUnit();
    while (told.number == apt::kConfiguration);
    EXPECT_EQ(told.field("URI"), uri);
  }
  void answer(const std::string& text, const std::string& content = "-") {
    io::Fd file;
    if (content != "-") {
      const auto path = folder_ / "fetched";
      ASSERT_TRUE(io::writeFileUnsynced(path, content));
      const timespec times[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
      file = io::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      std::filesystem::remove(path);
    }
    ASSERT_TRUE(unit_->send(text, file.get()));
  }
  void expectFailure(const std::string& uri, const std::string& why) {
    const auto said = toldApt();
    EXPECT_EQ(said.number, apt::kUriFailure);
    EXPECT_EQ(said.field("URI"), uri);
    EXPECT_THAT(said.field("Message").value_or(""), HasSubstr(why));
  }
  std::string contentOf(const std::string& name) {
    return io::readFile(folder_ / name).value_or("(not there)");
  }

  test::TempFolder folder_;
  const std::filesystem::path socket_ = folder_ / "socket";
  std::chrono::milliseconds silence_limit_ = std::chrono::minutes(30);
  io::Fd listening_, to_relay_, from_relay_, line_;
  std::optional<FetchSocket> unit_;
  AptMessageReader at_unit_, at_apt_;
  std::jthread relay_;
  Result<void> done_;
};

TEST_F(AptRelayTest, aFileComesWhereAptWantsIt) {
  startSilentUnit();
  answer("100 Capabilities\nVersion: 1.2\nPipeline: true\nLocal-Only: true\n\n");
  EXPECT_EQ(toText(toldApt()),
            "100 Capabilities\nVersion: 1.2\nPipeline: true\nSend-Config: true\n\n")
      << "a local method could name any file of this host";
  sayAsApt("601 Configuration\nConfig-Item: Acquire::Retries=3\n\n");
  EXPECT_EQ(toldUnit().field("Config-Item"), "Acquire::Retries=3");
  ask("https://a/x", folder_ / "x");
  answer("200 URI Start\nURI: https://a/x\nSize: 4\n\n");
  EXPECT_EQ(toldApt().field("Size"), "4");
  answer("201 URI Done\nURI: https://a/x\nFilename: /tmp/0\nSize: 4\n\n", "abcd");
  EXPECT_EQ(toText(toldApt()), "201 URI Done\nURI: https://a/x\nFilename: " +
                                   (folder_ / "x").string() + "\nSize: 4\n\n");
  EXPECT_EQ(contentOf("x"), "abcd");
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'700'000'000) << "apt asks for what is newer, by it";
  EXPECT_EQ(status.st_mode & 07777, 0644u);
  to_relay_ = io::Fd();
  relay_.join();
  EXPECT_TRUE(done_);
}

/// apt takes digests of a method for those of the file, and the file from where it says.
TEST_F(AptRelayTest, neitherDigestsNorFilesOfTheUnitAreBelieved) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  answer(
      "201 URI Done\nURI: https://a/x\nFilename: /etc/shadow\nAlt-Filename: /etc/shadow\n"
      "Size: 9\nMD5-Hash: 1\nMD5Sum-Hash: 1\nSHA256-Hash: 2\nSHA512-Hash: 3\n"
      "Checksum-FileSize-Hash: 9\nGPGVOutput: GOODSIG 1\nSigned-By: 1\n\n",
      "evil");
  EXPECT_EQ(toText(toldApt()), "201 URI Done\nURI: https://a/x\nFilename: " +
                                   (folder_ / "x").string() + "\nSize: 4\n\n");
}

TEST_F(AptRelayTest, whatAptHasAlreadyIsTheNewest) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  answer("201 URI Done\nURI: https://a/x\nFilename: /tmp/0\nIMS-Hit: true\n\n");
  EXPECT_EQ(toldApt().field("IMS-Hit"), "true");
  EXPECT_EQ(contentOf("x"), "(not there)");
}

TEST_F(AptRelayTest, aRedirectLeadsToWebServersOnly) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  answer("103 Redirect\nURI: https://a/x\nNew-URI: http://b/x\n\n");
  EXPECT_EQ(toldApt().field("New-URI"), "http://b/x");
  ask("https://a/y", folder_ / "y");
  answer("103 Redirect\nURI: https://a/y\nNew-URI: file:/etc/shadow\n\n");
  expectFailure("https://a/y", "something else than a web server");
}

TEST_F(AptRelayTest, aFileThatCannotBeWrittenIsThatFilesFailure) {
  startUnit();
  ask("https://a/x", folder_ / "not-there" / "x");
  ask("https://a/y", folder_ / "y");
  answer("201 URI Done\nURI: https://a/x\n\n", "abcd");
  expectFailure("https://a/x", "cannot write");
  answer("201 URI Done\nURI: https://a/y\n\n", "abcd");
  EXPECT_EQ(toldApt().number, apt::kUriDone);
  EXPECT_EQ(contentOf("y"), "abcd");
}

TEST_F(AptRelayTest, aLinkInTheFilesPlaceIsNotFollowed) {
  ASSERT_TRUE(io::writeFileUnsynced(folder_ / "other", "as it was"));
  std::filesystem::create_symlink(folder_ / "other", folder_ / "x");
  startUnit();
  ask("https://a/x", folder_ / "x");
  answer("201 URI Done\nURI: https://a/x\n\n", "abcd");
  expectFailure("https://a/x", "cannot write");
  EXPECT_EQ(contentOf("other"), "as it was");
}

TEST_F(AptRelayTest, whatIsNoAnswerEndsTheFetchingWithAReason) {
  struct {
    const char *text, *why;
  } cases[] = {
      {"201 URI Done\nURI: https://a/other\n\n", "what nobody has asked for"},
      {"201 URI Done\nURI: https://a/x\n\n", "did not hand over"},
      {"403 Media Change\nMedia: cd\n\n", "which no method does"},
      {"351 Aux Request\nURI: https://a/x\n\n", "which no method does"},
      {"nonsense\n\n", "begins no message"},
  };
  for (const auto& each : cases) {
    startSilentUnit();
    ask("https://a/x", folder_ / "x");
    answer(each.text);
    EXPECT_EQ(toldApt().number, apt::kCapabilities) << "apt waits for them first";
    expectFailure("https://a/x", each.why);
    acquire("https://a/z", folder_ / "z");  // and so does all that follows
    expectFailure("https://a/z", each.why);
    EXPECT_EQ(contentOf("x"), "(not there)");
    to_relay_ = io::Fd();
    relay_.join();
    EXPECT_TRUE(done_) << "apt has been told";
    at_unit_ = {};
    at_apt_ = {};
  }
}

TEST_F(AptRelayTest, aPipeIsNoFile) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const io::Fd reading(ends[0]), writing(ends[1]);
  ASSERT_TRUE(unit_->send("201 URI Done\nURI: https://a/x\n\n", reading.get()));
  expectFailure("https://a/x", "no regular file");
}

TEST_F(AptRelayTest, aFileOfAnotherSizeThanAptExpectsIsNotWritten) {
  startUnit();
  const auto askFor = [&](const std::string& name, const std::string& size) {
    sayAsApt("600 URI Acquire\nURI: https://a/" + name +
             "\nFilename: " + (folder_ / name).string() + "\n" + size + "\n\n");
    EXPECT_EQ(toldUnit().field("URI"), "https://a/" + name);
  };
  askFor("long", "Maximum-Size: 3");
  answer("201 URI Done\nURI: https://a/long\n\n", "abcd");
  expectFailure("https://a/long", "has 4 bytes, and may have 3 at most");
  askFor("short", "Maximum-Size: 9\nExpected-Checksum-FileSize: 5");
  answer("201 URI Done\nURI: https://a/short\n\n", "abcd");
  expectFailure("https://a/short", "has 4 bytes, and may have 5 alone");
  for (const auto* each : {"long", "short"}) EXPECT_EQ(contentOf(each), "(not there)");
  askFor("right", "Maximum-Size: 4\nExpected-Checksum-FileSize: 4");
  answer("201 URI Done\nURI: https://a/right\n\n", "abcd");
  EXPECT_EQ(toldApt().number, apt::kUriDone);
  EXPECT_EQ(contentOf("right"), "abcd");
}

TEST_F(AptRelayTest, aUnitThatEndsInTheMiddleIsSaid) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  ask("https://a/y", folder_ / "y");
  answer("200 URI Start\nURI: https://a/x\n");  // half a message
  line_ = io::Fd();
  expectFailure("https://a/x", "muster-fetch@*");
  expectFailure("https://a/y", "muster-fetch@*");
}

TEST_F(AptRelayTest, aUnitThatSaysNothingWhileItIsAskedIsGivenUp) {
  silence_limit_ = std::chrono::milliseconds(100);
  startUnit();
  ask("https://a/x", folder_ / "x");
  expectFailure("https://a/x", "has said nothing for");
}

TEST_F(AptRelayTest, emptyLinesSayNothing) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  answer("\n");
  answer("\n\n");
  answer("201 URI Done\nURI: https://a/x\n\n\n", "abcd");
  EXPECT_EQ(toldApt().number, apt::kUriDone);
}

TEST_F(AptRelayTest, aMessageWithoutAnEndIsRefused) {
  startUnit();
  ask("https://a/x", folder_ / "x");
  const std::string piece(64u << 10, 'x');
  for (std::size_t sent = 0; sent <= apt::kMaxMessageBytes; sent += piece.size())
    ASSERT_TRUE(unit_->send(piece));
  expectFailure("https://a/x", "has more than");
}

TEST_F(AptRelayTest, nobodyListensIsSaidForEachFile) {
  listening_ = io::Fd();
  startRelay();
  EXPECT_EQ(toldApt().field("Send-Config"), "true");
  sayAsApt("601 Configuration\nConfig-Item: APT::Sandbox::User=\n\n");
  acquire("https://a/x", folder_ / "x");
  expectFailure("https://a/x",
                "systemctl start muster-fetch.socket (where it is masked, first: systemctl unmask");
}

TEST_F(AptRelayTest, aSocketOfSomebodyElseIsNotBelieved) {
  startRelay(::geteuid() + 1);
  EXPECT_EQ(toldApt().number, apt::kCapabilities);
  acquire("https://a/x", folder_ / "x");
  expectFailure("https://a/x", "is not believed");
}

TEST_F(AptRelayTest, whatAptDoesNotSayIsAnError) {
  startUnit();
  sayAsApt("600 URI Acquire\nURI: https://a/x\n\n");
  relay_.join();
  ASSERT_FALSE(done_);
  EXPECT_EQ(done_.error().code(), ErrorCode::Corrupt);
}

/// As apt's own methods do: the file is that user's, and what the network's side speaks with is no
/// root any more.
TEST_F(AptRelayTest, rootBecomesTheUserOfTheSandbox) {
  const auto* nobody = ::getpwnam("nobody");
  if (::geteuid() != 0 || nobody == nullptr) GTEST_SKIP() << "another user takes root";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  int in[2], out[2];
  ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  const auto child = ::fork();  // the process as a whole changes
  if (child == 0) {
    ::close(in[1]);
    ::_exit(relayAptMethod({.scheme = "http", .socket = socket_, .in = in[0], .out = out[1]}) ? 0
                                                                                              : 1);
  }
  ::close(in[0]);
  ::close(out[1]);
  to_relay_ = io::Fd(in[1]);
  from_relay_ = io::Fd(out[0]);
  acceptUnit("{\"apt\":\"http\"}\n");
  sayAsApt("601 Configuration\nConfig-Item: APT::Sandbox::User=no%62ody\n\n");
  ask("http://a/x", folder_ / "x");
  answer("201 URI Done\nURI: http://a/x\n\n", "abcd");
  EXPECT_EQ(toldApt().number, apt::kUriDone);
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, nobody->pw_uid);
  EXPECT_EQ(status.st_gid, nobody->pw_gid);
  to_relay_ = io::Fd();
  int ended = -1;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace muster::provision
