// SPDX-License-Identifier: Apache-2.0
// The real apt with muster-fetch in the place of its methods, the real method in the fetch unit,
// and a small signed archive on a web server of this host.
#include "provision/images/fetch/fetch_unit.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/provision/images/fetch/fetch_unit_here.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poll.h>

#include <optional>
#include <thread>

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FetchUnitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!io::runChecked({.program = "apt-get", .args = {"--version"}}) ||
        !io::runChecked({.program = "apt-ftparchive", .args = {"--version"}}))
      GTEST_SKIP() << "needs apt and apt-utils";
    makeArchive();
    server_.emplace(folder_ / "archive");
    ASSERT_TRUE(io::makeDirs(folder_ / "fetched"));
    for (const char* each :
         {"host/etc/apt/apt.conf.d", "host/etc/apt/preferences.d", "host/var/lib/dpkg",
          "host/var/lib/apt/lists/partial", "host/var/cache/apt/archives/partial", "methods"})
      ASSERT_TRUE(io::makeDirs(folder_ / each));
    ASSERT_TRUE(io::writeFileUnsynced(folder_ / "host/var/lib/dpkg/status", ""));
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const char* scheme : {"http", "https"})
      std::filesystem::create_symlink(program / "muster-fetch", folder_ / "methods" / scheme);
    ASSERT_TRUE(io::writeFileUnsynced(
        folder_ / "apt.conf",
        fmt::format("Dir \"{0}/host\";\nDir::State::status \"{0}/host/var/lib/dpkg/status\";\n"
                    "Dir::Bin::Methods::http \"{0}/methods/http\";\n"
                    "Acquire::Languages \"none\";\nAcquire::Retries \"0\";\n"
                    "APT::Architecture \"amd64\";\n",
                    folder_.path().string())));
    useArchive(server_->url());
  }
  void TearDown() override { (void)io::runBlocking(tool("gpgconf", {"--kill", "gpg-agent"})); }

  io::Command tool(std::string program, std::vector<std::string> args) {
    io::Command command{.program = std::move(program), .args = std::move(args)};
    command.env = {{"GNUPGHOME", (folder_ / "gpg").string()}};
    return command;
  }
  std::string run(std::string program, std::vector<std::string> args) {
    const auto done = io::runChecked(tool(std::move(program), std::move(args)));
    EXPECT_TRUE(done) << done.error().str();
    return done.value_or("");
  }
  /// One package of 3 MiB, whose file has many parts for a connection.
  void makeArchive() {
    const auto tree = folder_ / "tree", archive = folder_ / "archive";
    ASSERT_TRUE(io::makeDirs(tree / "DEBIAN"));
    ASSERT_TRUE(io::makeDirs(archive));
    ASSERT_TRUE(io::makeDirs(folder_ / "gpg", 0700));
    ASSERT_TRUE(io::writeFileUnsynced(
        tree / "DEBIAN/control",
        "Package: site\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.com>\n"
        "Description: test\n"));
    ASSERT_TRUE(io::writeFileUnsynced(tree / "content", std::string(3u << 20, 'x')));
    run("dpkg-deb", {"--build", "-Znone", "--root-owner-group", tree.string(),
                     (archive / "site_1_all.deb").string()});
    run("gpg", {"--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "site@example.com",
                "rsa2048", "sign", "never"});
    ASSERT_TRUE(io::writeFileUnsynced(
        folder_ / "site.asc", run("gpg", {"--batch", "--armor", "--export", "site@example.com"})));
    run("sh", {"-c", fmt::format("cd {} && apt-ftparchive packages . >Packages && "
                                 "apt-ftparchive release . >../Release && gpg --batch --quiet "
                                 "--clearsign -o InRelease ../Release",
                                 archive.string())});
  }
  void useArchive(const std::string& url) {
    ASSERT_TRUE(io::writeFileUnsynced(
        folder_ / "host/etc/apt/sources.list",
        fmt::format("deb [signed-by={}] {} ./\n", (folder_ / "site.asc").string(), url)));
  }
  void startUnit() {
    unit_.reset();
    std::filesystem::remove(folder_ / "socket");
    unit_.emplace(folder_ / "socket",
                  FetchUnit{.folder = folder_ / "fetched", .methods = methods_});
  }
  /// A program in the place of the fetch unit's method.
  void useMethod(const std::string& script) {
    methods_ = folder_ / "others";
    ASSERT_TRUE(io::makeDirs(methods_));
    ASSERT_TRUE(io::writeFileUnsynced(methods_ / "http", "#!/bin/sh\n" + script, 0755));
  }
  struct Said {
    int code;
    std::string text;
  };
  Said apt(std::vector<std::string> args) {
    io::Command command{.program = "apt-get", .args = std::move(args)};
    command.env = {{"APT_CONFIG", (folder_ / "apt.conf").string()},
                   {"MUSTER_FETCH_SOCKET", (folder_ / "socket").string()},
                   {"LC_ALL", "C"}};
    command.working_dir = folder_ / "host";
    const auto done = io::runBlocking(command);
    EXPECT_TRUE(done) << done.error().str();
    return done ? Said{done->code, done->out + done->err} : Said{-1, ""};
  }
  std::string contentOf(const std::string& name) {
    return io::readFile(folder_ / name).value_or("(not there)");
  }
  void expectNothingLeft() {
    unit_.reset();  // when all that is served has ended
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "fetched"));
  }

  test::TempFolder folder_;
  std::filesystem::path methods_ = "/usr/lib/apt/methods";
  std::optional<test::ArchiveServer> server_;
  std::optional<test::FetchUnitHere> unit_;
};

TEST_F(FetchUnitTest, aptGetsWhatItWouldGetByItself) {
  startUnit();
  const auto updated = apt({"update"});
  ASSERT_EQ(updated.code, 0) << updated.text;
  EXPECT_THAT(updated.text, HasSubstr("Get:1 " + server_->url()));
  const auto again = apt({"update"});
  EXPECT_THAT(again.text, AllOf(HasSubstr("Hit:1 "), Not(HasSubstr("Get:"))));
  const auto downloaded = apt({"download", "site"});
  ASSERT_EQ(downloaded.code, 0) << downloaded.text;
  EXPECT_EQ(contentOf("host/site_1_all.deb"), contentOf("archive/site_1_all.deb"));
  expectNothingLeft();
}

TEST_F(FetchUnitTest, aRedirectIsFollowed) {
  startUnit();
  useArchive(server_->url() + "/moved");
  const auto updated = apt({"update"});
  ASSERT_EQ(updated.code, 0) << updated.text;
  EXPECT_THAT(contentOf("archive/asked"),
              AllOf(HasSubstr("GET /moved/./InRelease"), HasSubstr("GET /./InRelease")));
  expectNothingLeft();
}

TEST_F(FetchUnitTest, aProxyOfTheUnitIsUsed) {
  ::setenv("http_proxy", server_->url().c_str(), 1);
  startUnit();
  useArchive("http://archive.invalid/");
  const auto updated = apt({"update"});  // nobody else knows that name
  ::unsetenv("http_proxy");
  EXPECT_THAT(contentOf("archive/by-proxy"), HasSubstr("GET http://archive.invalid/./InRelease"))
      << updated.text;
  expectNothingLeft();
}

/// The real method makes two requests of one when its User-Agent has line ends.
TEST_F(FetchUnitTest, aSettingMakesNoRequestOfItsOwn) {
  startUnit();
  const auto host = server_->url().substr(7);
  const auto updated =
      apt({"update", "-o",
           "Acquire::http::User-Agent=x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: " + host});
  ASSERT_EQ(updated.code, 0) << updated.text;
  EXPECT_THAT(contentOf("archive/asked"),
              AllOf(HasSubstr("InRelease"), Not(HasSubstr("smuggled"))));
  expectNothingLeft();
}

TEST_F(FetchUnitTest, aConnectionThatEndsInTheMiddleIsSaidAndTheNextOneIsWhole) {
  startUnit();
  ASSERT_EQ(apt({"update"}).code, 0);
  ASSERT_TRUE(std::filesystem::exists(folder_ / "archive/Packages"));
  useArchive(server_->url() + "/cut");
  const auto cut = apt({"update", "-o", "APT::Update::Error-Mode=any"});
  EXPECT_NE(cut.code, 0) << cut.text;
  useArchive(server_->url());
  ASSERT_EQ(apt({"update"}).code, 0);
  ASSERT_EQ(apt({"download", "site"}).code, 0);
  EXPECT_EQ(contentOf("host/site_1_all.deb"), contentOf("archive/site_1_all.deb"));
  expectNothingLeft();
}

/// A fetch unit that was taken over: it brings another package, and says that it has hashed it.
TEST_F(FetchUnitTest, aDigestThatTheUnitHasMadeUpIsNotBelieved) {
  startUnit();
  ASSERT_EQ(apt({"update"}).code, 0);
  const auto digest =
      run("sha256sum", {(folder_ / "archive/site_1_all.deb").string()}).substr(0, 64);
  const auto size = std::filesystem::file_size(folder_ / "archive/site_1_all.deb");
  useMethod(fmt::format(
      "printf '100 Capabilities\\nVersion: 1.2\\nSend-Config: true\\n\\n'\n"
      "while read -r line; do case $line in\n"
      "  'URI: '*) uri=${{line#URI: }} ;;\n"
      "  'Filename: '*) file=${{line#Filename: }} ;;\n"
      "  '') if [ -n \"${{file:-}}\" ]; then head -c {0} /dev/zero >\"$file\"; printf '201 URI "
      "Done\\nURI: %s\\nFilename: %s\\nSize: {0}\\nSHA256-Hash: {1}\\n\\n' \"$uri\" "
      "\"$file\"; fi; file= ;;\n"
      "esac; done\n",
      size, digest));
  startUnit();
  const auto refused = apt({"download", "site"});
  EXPECT_NE(refused.code, 0) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("Hash Sum mismatch"));
  EXPECT_EQ(contentOf("host/site_1_all.deb"), "(not there)");
  expectNothingLeft();
}

TEST_F(FetchUnitTest, aMethodThatEndsInTheMiddleIsSaid) {
  useMethod(
      "printf '100 Capabilities\\nVersion: 1.2\\nSend-Config: true\\n\\n'\n"
      "while read -r line; do case $line in 'Filename: '*) echo half >\"${line#Filename: }\"; "
      "exit 7 ;; esac; done\n");
  startUnit();
  const auto failed = apt({"update", "-o", "APT::Update::Error-Mode=any"});
  EXPECT_NE(failed.code, 0);
  EXPECT_THAT(failed.text, AllOf(HasSubstr("apt's method has ended with 7"),
                                 HasSubstr("the fetch unit has ended in the middle")));
  expectNothingLeft();
}

TEST_F(FetchUnitTest, aMethodThatIsNotThereIsSaid) {
  methods_ = folder_ / "nowhere";
  startUnit();
  const auto failed = apt({"update", "-o", "APT::Update::Error-Mode=any"});
  EXPECT_NE(failed.code, 0);
  EXPECT_THAT(failed.text, HasSubstr("is not an executable file"));
  expectNothingLeft();
}

TEST_F(FetchUnitTest, withoutTheUnitAptSaysWhatToDo) {
  const auto failed = apt({"update", "-o", "APT::Update::Error-Mode=any"});
  EXPECT_NE(failed.code, 0);
  EXPECT_THAT(failed.text, HasSubstr("systemctl start muster-fetch.socket"));
}

class FetchRequest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Result<void> serve(uid_t asker = ::geteuid()) {
    return serveFetchRequest(ends_[1], {.folder = folder_.path(), .asker = asker});
  }
  void say(const std::string& text) {
    ASSERT_EQ(::send(ends_[0], text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  test::TempFolder folder_;
  int ends_[2] = {-1, -1};
};

TEST_F(FetchRequest, onlyItsAskerIsServed) {
  say("{\"apt\":\"http\"}\n");
  const auto done = serve(::geteuid() + 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Denied);
}

TEST_F(FetchRequest, whatIsNoneIsAnswered) {
  for (const auto* text :
       {"{}\n", "[]\n", "7\n", "\n", "{\"apt\":\"../../bin/sh\"}\n", "{\"apt\":7}\n",
        "{\"dnf\":7}\n", "{\"dnf\":{}}\n", "nonsense\n",
        R"({"dnf":{"configuration":"c","release":"-x","packages":[],"modules":[]}})"
        "\n",
        R"({"dnf":{"configuration":"c","release":"9","packages":["--installroot=/"],"modules":[]}})"
        "\n",
        R"({"dnf":{"configuration":"c","release":"9","packages":[7],"modules":[]}})"
        "\n"}) {
    say(text);
    EXPECT_FALSE(serve()) << text;
    char answer[1024];
    const auto got = ::read(ends_[0], answer, sizeof answer);
    ASSERT_GT(got, 0) << text;
    EXPECT_THAT(std::string(answer, static_cast<std::size_t>(got)), HasSubstr("\"error\"")) << text;
    TearDown();
    SetUp();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(FetchRequest, anAskerThatGoesAtOnceIsNone) {
  say("{\"apt\":\"ht");
  ::shutdown(ends_[0], SHUT_WR);
  const auto done = serve();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Unavailable);
}

TEST_F(FetchRequest, whatComesInSlowlyGetsNoMoreTime) {
  std::jthread asker([this] {  // ends by itself, so that the test does
    for (int i = 0; i < 300; ++i) {
      if (::send(ends_[0], " ", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::shutdown(ends_[0], SHUT_WR);
  });
  const auto done = serveFetchRequest(ends_[1], {.folder = folder_.path(),
                                                 .asker = ::geteuid(),
                                                 .request_limit = std::chrono::milliseconds(100)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Timeout) << done.error().str();
}

class FetchRequestOfApt : public FetchRequest {
 protected:
  void SetUp() override {
    FetchRequest::SetUp();
    for (const char* each : {"methods", "fetched"}) ASSERT_TRUE(io::makeDirs(folder_ / each));
  }
  void useMethod(const std::string& script) {
    ASSERT_TRUE(io::writeFileUnsynced(folder_ / "methods/http", "#!/bin/sh\n" + script, 0755));
  }
  Result<void> serveMethod() {
    return serveFetchRequest(ends_[1], {.folder = folder_ / "fetched",
                                        .methods = folder_ / "methods",
                                        .asker = ::geteuid(),
                                        .sign_interval = std::chrono::milliseconds(0)});
  }
  std::string answered() {
    std::string out(64u << 10, 0);
    const auto got = ::recv(ends_[0], out.data(), out.size(), MSG_DONTWAIT);
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return out;
  }
  /// To the end of a message 600, with its file in $file.
  static constexpr const char* kReadAsked =
      "while read -r line && [ -n \"$line\" ]; do case $line in Filename*) file=${line#*: };; "
      "esac; done\n";
};

/// The method is at work: it ends with its asker.
TEST_F(FetchRequestOfApt, anAskerThatGoesInTheMiddleEndsTheMethod) {
  useMethod("exec cat >/dev/null\n");
  say("{\"apt\":\"http\"}\n600 URI Acquire\nURI: http://a/x\n");
  ::shutdown(ends_[0], SHUT_WR);
  const auto done = serveMethod();
  EXPECT_TRUE(done);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "fetched"));
}

/// apt's method takes a Config-Item anywhere in a message for a setting.
TEST_F(FetchRequestOfApt, theMethodHearsOfListedSettingsAndFieldsAlone) {
  const auto heard = folder_ / "heard";
  useMethod(
      fmt::format("while read -r line; do echo \"$line\"; case $line in Filename*) exit;; "
                  "esac; done >{}\n",
                  heard.string()));
  say("{\"apt\":\"http\"}\n"
      "601 Configuration Config-Item: Acquire::http::User-Agent=a\n"
      "Config-Item: Acquire::http::Timeout=3\n"
      "Other: Config-Item: Acquire::http::User-Agent=x%0d%0aGET / HTTP/1.1\n"
      "Config-Item: Acquire::http::User-Agent=x%0d%0aGET / HTTP/1.1\n\n"
      "602 Authorization Config-Item: Acquire::http::User-Agent=a\n\n"
      "600 URI Acquire\nURI: http://a/%0d%0ax\nFilename: /x\n\n"
      "600 URI Acquire\nURI: http://a/x\nOther: x\nFilename: /x\n\n");
  EXPECT_FALSE(serveMethod()) << "the method has ended";
  EXPECT_THAT(io::readFile(heard).value_or(""),
              testing::MatchesRegex("601 Configuration\nConfig-Item: Acquire::http::Timeout=3\n\n"
                                    "600 URI Acquire\nURI: http://a/x\nFilename: .*/0\n"));
  EXPECT_THAT(answered(), HasSubstr("400 URI Failure\nURI: http://a/%0d%0ax\n"));
}

/// apt's own methods stop there themselves.
TEST_F(FetchRequestOfApt, aFileThatGrowsBeyondItsSizeEndsTheMethod) {
  useMethod(std::string(kReadAsked) +
            "echo 0123456789 >\"$file\"\nread -r line\n");  // and waits for more
  for (const auto* size : {"Maximum-Size: 9", "Expected-Checksum-FileSize: 10"}) {
    say(fmt::format("{{\"apt\":\"http\"}}\n600 URI Acquire\nURI: http://a/x\nFilename: /x\n{}\n\n",
                    size));
    const auto done = serveMethod();
    ASSERT_FALSE(done) << size;
    EXPECT_THAT(done.error().str(), HasSubstr("a file has 11 bytes, more than apt expects"));
    EXPECT_THAT(answered(), HasSubstr("401 General Failure"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "fetched"));
}

TEST_F(FetchRequestOfApt, whileAFileGrowsEmptyLinesSaySo) {
  useMethod(std::string(kReadAsked) + "echo x >\"$file\"\nread -r line\n");
  say("{\"apt\":\"http\"}\n600 URI Acquire\nURI: http://a/x\nFilename: /x\n\n");
  std::jthread serving([this] { (void)serveMethod(); });
  pollfd wait{ends_[0], POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 20'000), 1);
  EXPECT_EQ(answered(), "\n");
  ::shutdown(ends_[0], SHUT_WR);
}

/// As by the unit's LimitFSIZE.
TEST_F(FetchRequestOfApt, aFileBeyondTheLimitOfTheUnitIsAFailureOfThatFile) {
  useMethod("ulimit -f 8\n" + std::string(kReadAsked) +
            "head -c 100000 /dev/zero >\"$file\" 2>/dev/null\n"
            "printf '102 Status\\nMessage: ended with %s\\n\\n' $?\n");
  say("{\"apt\":\"http\"}\n600 URI Acquire\nURI: http://a/x\nFilename: /x\n\n");
  EXPECT_FALSE(serveMethod()) << "the method has ended";
  EXPECT_THAT(answered(), HasSubstr("Message: ended with 1\n"));
}

}  // namespace
}  // namespace muster::provision
