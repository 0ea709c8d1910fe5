// SPDX-License-Identifier: Apache-2.0
// What the build unit takes of the fetch unit for dnf, where the fetch unit is played here. The
// real dnf on both sides: dnf_system_test.cc.
#include "provision/images/fetch/dnf_fetch.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace muster::provision {
namespace {

using testing::HasSubstr;

class DnfFetchTest : public testing::Test {
 protected:
  void SetUp() override {
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto socket = (folder_ / "socket").string();
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listening_.get(), 4), 0);
  }
  /// A fetch unit that answers so, each line with a file where `files` has one.
  std::jthread unit(std::vector<std::pair<std::string, std::string>> answers) {
    return std::jthread([this, answers = std::move(answers)] {
      const io::Fd line(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char request[4096];
      (void)::read(line.get(), request, sizeof request);
      FetchSocket socket(line.get());
      for (const auto& [text, content] : answers) {
        io::Fd file;
        if (!content.empty()) {
          (void)io::writeFileUnsynced(folder_ / "fetched", content);
          file = io::Fd(::open((folder_ / "fetched").c_str(), O_RDONLY | O_CLOEXEC));
          std::filesystem::remove(folder_ / "fetched");
        }
        if (!socket.send(text, file.get())) return;
      }
    });
  }
  Result<void> fetch() {
    return fetchDnfCache(folder_ / "socket", ::geteuid(), {"[main]", "9", {"a"}, {}},
                         folder_ / "cache");
  }

  test::TempFolder folder_;
  io::Fd listening_;
};

TEST_F(DnfFetchTest, filesComeToTheirPlaces) {
  const auto other = unit({{"{\"file\":\"site-1/repodata/repomd.xml\"}\n", "x"},
                           {"{\"file\":\"site-1/packages/a.rpm\"}\n", "y"},
                           {"{\"done\":true}\n", ""}});
  const auto done = fetch();
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(io::readFile(folder_ / "cache/site-1/repodata/repomd.xml").value_or(""), "x");
  EXPECT_EQ(io::readFile(folder_ / "cache/site-1/packages/a.rpm").value_or(""), "y");
}

TEST_F(DnfFetchTest, anAnswerThatIsNoneIsRefused) {
  struct {
    std::string text, content;
    ErrorCode code;
  } cases[] = {
      {"{\"file\":\"../outside\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"a/../../outside\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"/outside\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"a/./b\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"a/\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"" + std::string(2000, 'a') + "\"}\n", "x", ErrorCode::Corrupt},
      {"{\"file\":\"a/b\"}\n", "", ErrorCode::Corrupt},
      {"nonsense\n", "", ErrorCode::Corrupt},
      {std::string(200'000, ' '), "", ErrorCode::Corrupt},
      {"{\"file\":\"a/b\"}", "x", ErrorCode::Unavailable},
      {"", "", ErrorCode::Unavailable},
      {"{\"error\":\"not found\",\"text\":\"no dnf\"}\n", "", ErrorCode::NotFound},
  };
  for (const auto& each : cases) {
    const auto other = unit({{each.text, each.content}});
    const auto done = fetch();
    ASSERT_FALSE(done) << each.text.substr(0, 60);
    EXPECT_EQ(done.error().code(), each.code) << each.text.substr(0, 60) << done.error().str();
    EXPECT_THAT(done.error().str(), HasSubstr("muster-fetch@.service"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "outside"));
}

TEST_F(DnfFetchTest, whatIsNoAnswerIsSaidShortly) {
  for (const auto* text : {"{\"file\":5}\n", "7\n", "[]\n", "{}\n", "{\"done\":false}\n"}) {
    const auto other = unit({{text, ""}});
    const auto done = fetch();
    ASSERT_FALSE(done) << text;
    EXPECT_THAT(done.error().str(), HasSubstr("answered with what is no answer")) << text;
  }
  const auto other = unit({{"{\"file\":\"" + std::string(2000, 'a') + "\"}\n", "x"}});
  const auto done = fetch();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("\"" + std::string(80, 'a') + "\""));
}

TEST_F(DnfFetchTest, nobodyListensIsSaid) {
  listening_ = io::Fd();
  const auto done = fetch();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("systemctl start muster-fetch.socket"));
}

TEST(DnfRequest, comesBackAsItWasSaid) {
  const DnfRequest request{"[main]\ngpgcheck=1\n", "9", {"kernel", "a-1"}, {"nodejs:18"}};
  const auto read = parseDnfRequest(toJson(request));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(*read, request);
}

/// A dnf of the test's own, which is what fetch.sh finds by PATH.
class DnfDownload : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* each : {"bin", "work"}) ASSERT_TRUE(io::makeDirs(folder_ / each));
    ASSERT_TRUE(io::writeFileUnsynced(folder_ / "bin/dnf",
                                      "#!" + (folder_ / "bin/python").string() + "\n", 0755));
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const int end : ends_) ::close(end);
  }
  Result<void> download(const std::string& script) {
    EXPECT_TRUE(io::writeFileUnsynced(
        folder_ / "bin/python",
        "#!/bin/sh\ncase $* in *--version) exit 0 ;; esac\n" + script + "\n", 0755));
    return downloadForDnf(FetchSocket(ends_[1]), {"[main]", "9", {"a"}, {}}, folder_ / "work", {});
  }

  const std::string path_ = std::getenv("PATH");
  test::TempFolder folder_;
  int ends_[2] = {-1, -1};
};

/// Files of the folder are not run: it may be mounted noexec.
TEST_F(DnfDownload, nothingInTheFolderIsExecutable) {
  const auto done = download("exit 0");
  ASSERT_TRUE(done) << done.error().str();
  using std::filesystem::perms;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "work"))
    if (entry.is_regular_file())
      EXPECT_EQ(entry.status().permissions() & perms::owner_exec, perms::none) << entry.path();
}

TEST_F(DnfDownload, whatDnfSaysIsItsFailure) {
  const auto done = download("echo no such package; exit 3");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("ended with code 3: no such package"));
}

TEST_F(DnfDownload, dnfAndWhatItStartedEndWithTheAsker) {
  const auto fifo = folder_ / "lives";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const io::Fd lives(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Result<void> done;
  std::jthread downloading(
      [&] { done = download("exec 5>" + fifo.string() + "; sleep 60 & echo x >&5; wait"); });
  const auto read = [&] {
    pollfd wait{lives.get(), POLLIN, 0};
    char piece[8];
    return ::poll(&wait, 1, 20'000) == 1 ? ::read(lives.get(), piece, sizeof piece) : -1;
  };
  EXPECT_EQ(read(), 2) << "it has begun";
  ::shutdown(ends_[0], SHUT_WR);
  EXPECT_EQ(read(), 0) << "nobody holds it any more";
  downloading.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Unavailable);
}

}  // namespace
}  // namespace muster::provision
