// SPDX-License-Identifier: Apache-2.0
// The build unit and who asks it, over a real Unix socket; what is wrong is said by the other side
// as text, written here.
#include "provision/images/build_unit.h"

#include "base/io/files.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "tests/fakes/fake_system_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

class BuildUnit : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "build-unit-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* each : {"cache", "entry", "work"}) fs::create_directory(folder_ / each);
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket().c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listening_.get(), 4), 0);
    image_.name = "gpu";
    image_.source = inventory::ImageBuild{};
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path socket() const { return folder_ / "socket"; }
  std::unique_ptr<SystemBuilder> asker() const { return makeUnitBuilder(socket(), ::geteuid()); }
  io::Fd accept() const {
    return io::Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  Result<void> serve(int connection) {
    const auto image = [this](const std::string& name) -> Result<inventory::Image> {
      if (name == image_.name) return declared_.value_or(image_);
      return fail(ErrorCode::NotFound, "declares no image " + name);
    };
    const auto ram_os = [this]() -> Result<inventory::RamOsSpec> { return ram_os_; };
    return serveBuildRequest(connection, folder_ / "cache", builder_, {image, ram_os}, way_);
  }
  /// The other side, for one connection, beside the test.
  std::jthread unit() {
    return std::jthread([this] {
      const auto connection = accept();
      (void)serve(connection.get());
    });
  }
  /// Another program in the unit's place, which reads the request and answers `text`.
  std::jthread otherProgram(std::string text) {
    return std::jthread([this, text = std::move(text)] {
      const auto connection = accept();
      char request[4096];
      (void)::read(connection.get(), request, sizeof request);
      (void)::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
    });
  }
  Result<void> askForImage() {
    return asker()->buildRootFs(image_, folder_ / "work", folder_ / "entry" / "root.ext4",
                                [this](std::string_view text) { said_.emplace_back(text); });
  }
  Result<void> askForRamOs(Architecture architecture) {
    return asker()->buildRamOs({}, architecture, folder_ / "work", folder_ / "entry",
                               [](std::string_view) {});
  }
  bool cacheIsEmpty() const { return fs::is_empty(folder_ / "cache"); }

  fs::path folder_;
  io::Fd listening_;
  inventory::Image image_;
  std::optional<inventory::Image> declared_;  ///< where the unit reads another inventory
  inventory::RamOsSpec ram_os_;               ///< that the unit reads
  test::FakeSystemBuilder builder_;
  BuildAccess way_;
  std::vector<std::string> said_;
};

TEST_F(BuildUnit, whatItMakesComesToWhoAskedAndNothingIsLeft) {
  builder_.image_bytes = std::string(3u << 20, '\0') + "end";
  {
    const auto other = unit();
    const auto done = askForImage();
    ASSERT_TRUE(done) << done.error().str();
  }
  const auto file = folder_ / "entry" / "root.ext4";
  EXPECT_EQ(io::readFile(file, 8u << 20).value_or(""), builder_.image_bytes);
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20) << "holes stay holes";
  EXPECT_TRUE(cacheIsEmpty());
}

/// Set-user-ID files of a tree are for nobody on this host; apt's downloads, as user _apt, are to
/// find their folder all the same.
TEST_F(BuildUnit, itWorksBehindAClosedFolderAndComesThereByAWayOfItsOwn) {
  fs::create_directory(folder_ / "seen");
  mode_t closed = 0, work = 0;
  way_ = [&](const fs::path& place) -> Result<fs::path> {
    struct stat status{};
    if (::stat(place.parent_path().c_str(), &status) == 0) closed = status.st_mode & 07777;
    if (::stat(place.c_str(), &status) == 0) work = status.st_mode & 07777;
    return folder_ / "seen";
  };
  {
    const auto other = unit();
    const auto done = askForImage();
    ASSERT_TRUE(done) << done.error().str();
  }
  EXPECT_EQ(closed, 0700u);
  EXPECT_EQ(work, 0711u);
  EXPECT_TRUE(fs::exists(folder_ / "seen" / "left-over")) << "there it has worked";

  way_ = [](const fs::path&) -> Result<fs::path> {
    return fail(ErrorCode::Internal, "cannot mount");
  };
  const auto other = unit();
  const auto done = askForImage();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("cannot mount"));
}

TEST_F(BuildUnit, ramOsOfEachArchitectureWithItsLoaders) {
  for (const auto& traits : kArchitectures) {
    fs::remove_all(folder_ / "entry");
    fs::create_directory(folder_ / "entry");
    {
      const auto other = unit();
      const auto done = askForRamOs(traits.architecture);
      ASSERT_TRUE(done) << done.error().str();
    }
    EXPECT_TRUE(fs::exists(folder_ / "entry" / "vmlinuz"));
    EXPECT_TRUE(fs::exists(folder_ / "entry" / "initrd.img"));
    EXPECT_EQ(fs::exists(folder_ / "entry" / "shim.efi"),
              traits.architecture == Architecture::Arm64);
  }
}

TEST_F(BuildUnit, anotherRamOsThanMeantIsNotBuilt) {
  std::atomic<int> builds{0};
  builder_.builds = &builds;
  ram_os_.packages = {"firmware-misc-nonfree"};
  {
    const auto other = unit();
    const auto done = askForRamOs(Architecture::Amd64);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::Conflict);
    EXPECT_THAT(done.error().str(), HasSubstr("the RAM OS is declared otherwise"));
  }
  EXPECT_EQ(builds, 0);
  const auto other = unit();
  const auto done = asker()->buildRamOs(ram_os_, Architecture::Amd64, folder_ / "work",
                                        folder_ / "entry", [](std::string_view) {});
  EXPECT_TRUE(done) << done.error().str();
  EXPECT_EQ(builds, 1);
}

TEST_F(BuildUnit, whatFailsThereFailsHereWithItsReason) {
  builder_.failure = Error(ErrorCode::Unavailable, "mirror \"x\"\nis away");
  const auto other = unit();
  const auto done = askForImage();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(done.error().str(), HasSubstr("is away"));
}

TEST_F(BuildUnit, anotherDeclarationThanMeantIsNotBuilt) {
  std::atomic<int> builds{0};
  builder_.builds = &builds;
  declared_ = image_;
  std::get<inventory::ImageBuild>(declared_->source).packages = {"netcat-openbsd"};
  {
    const auto other = unit();
    const auto done = askForImage();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::Conflict);
    EXPECT_THAT(done.error().str(), HasSubstr("MUSTER_INVENTORY"));
  }
  image_.name = "gpu";
  declared_.reset();
  auto strange = image_;
  strange.name = "of-nobody";
  {
    const auto other = unit();
    const auto done = asker()->buildRootFs(strange, folder_ / "work", folder_ / "entry" / "x",
                                           [](std::string_view) {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::NotFound);
  }
  EXPECT_EQ(builds, 0);
  EXPECT_TRUE(cacheIsEmpty());
}

TEST_F(BuildUnit, aSocketOfSomebodyElseIsNotBelieved) {
  const auto done = makeUnitBuilder(socket(), ::geteuid() + 1)
                        ->buildRamOs({}, Architecture::Amd64, folder_ / "work", folder_ / "entry",
                                     [](std::string_view) {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Denied);
}

TEST_F(BuildUnit, noSocketIsSaid) {
  listening_ = io::Fd();
  const auto done = askForImage();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(done.error().str(), HasSubstr("systemctl start muster-build.socket"));
}

TEST_F(BuildUnit, anAnswerThatIsNoneIsRefused) {
  const auto outside = folder_ / "outside";
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "made", "x"));
  const auto path = (folder_ / "made").string();
  struct {
    std::string text;
    ErrorCode code;
  } cases[] = {
      {"", ErrorCode::Unavailable},
      {"{\"say\":\"half a li", ErrorCode::Unavailable},
      {"{\"say\":\"1\"}\n", ErrorCode::Unavailable},  // as of a unit that was killed
      {"{\"done\":true}\n", ErrorCode::Corrupt},
      {"nonsense\n", ErrorCode::Corrupt},
      {std::string(80, '[') + "\n", ErrorCode::Corrupt},
      {"{\"file\":\"../outside\",\"path\":\"" + path + "\"}\n{\"done\":true}\n",
       ErrorCode::Corrupt},
      {"{\"file\":\"rootfs\",\"path\":\"" + path + "\"}\n{\"done\":true}\n",
       ErrorCode::Corrupt},  // of a RAM OS nobody asked for one
      {"{\"error\":\"a word\",\"text\":\"t\"}\n", ErrorCode::Internal},
      {std::string(200'000, ' '), ErrorCode::InvalidInput},
  };
  for (const auto& each : cases) {
    const auto other = otherProgram(each.text);
    const auto done = askForRamOs(Architecture::Amd64);
    ASSERT_FALSE(done) << each.text.substr(0, 60);
    EXPECT_EQ(done.error().code(), each.code) << each.text.substr(0, 60) << done.error().str();
  }
  EXPECT_FALSE(fs::exists(outside));
  EXPECT_TRUE(fs::is_empty(folder_ / "entry"));
}

TEST_F(BuildUnit, aRequestThatIsNoneIsAnsweredAndNothingIsBuilt) {
  std::atomic<int> builds{0};
  builder_.builds = &builds;
  for (const std::string& text :
       {std::string("{}\n"), std::string("[]\n"), std::string("7\n"), std::string("\n"),
        std::string("{\"image\":\"gpu\"}\n"), std::string("{\"image\":7,\"key\":\"k\"}\n"),
        std::string("{\"ramos\":\"z80\",\"key\":\"k\"}\n"),
        std::string("{\"image\":\"gpu\",\"key\":\"k\",\"script\":\"rm\"}\n"),
        std::string("{\"image\":\"gpu\",\"image\":\"b\",\"key\":\"k\"}\n"),
        std::string("{\"image\":\"gpu\",\"ramos\":\"amd64\",\"key\":\"k\"}\n"),
        std::string(70'000, '[') + "\n", std::string(100, '[') + "\n"}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    io::Fd ours(ends[0]), theirs(ends[1]);
    std::jthread writer([&] { (void)::send(ours.get(), text.data(), text.size(), MSG_NOSIGNAL); });
    EXPECT_FALSE(serve(theirs.get())) << text.substr(0, 60);
    theirs = io::Fd();
    writer.join();
    std::string answer(512, '\0');
    const auto got = ::read(ours.get(), answer.data(), answer.size());
    if (got > 0) {  // a peer that still had to be read from may reset the connection
      answer.resize(static_cast<std::size_t>(got));
      EXPECT_THAT(answer, HasSubstr("\"error\"")) << text.substr(0, 60);
    }
  }
  EXPECT_EQ(builds, 0);
  EXPECT_TRUE(cacheIsEmpty());
}

// In a process of its own, which the unit is: systemd ends with it what it has started.
TEST_F(BuildUnit, endsWhenNobodyWaitsAnyMoreAndTheNextOneClearsUp) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    builder_.during_build = [] { ::pause(); };  // a build that takes for ever
    (void)serve(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  io::Fd ours(ends[0]);
  const auto request = toLine({"gpu", imageKey(image_), Architecture::Amd64}) + "\n";
  ASSERT_EQ(::send(ours.get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  while (cacheIsEmpty()) std::this_thread::yield();  // until it builds
  ours = io::Fd();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
  EXPECT_FALSE(cacheIsEmpty()) << "it was killed, as it were";
  // One that is at work stays; that of the process that is gone goes.
  fs::create_directory(folder_ / "cache" / "build-at-work");
  const io::Fd held(
      ::open((folder_ / "cache" / "build-at-work").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  {
    const auto other = unit();
    ASSERT_TRUE(askForImage());
  }
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_ / "cache"))
    left.push_back(entry.path().filename().string());
  EXPECT_EQ(left, std::vector<std::string>{"build-at-work"});
}

TEST(BuildRequest, comesBackAsItWasSaid) {
  for (const auto& request : {BuildRequest{"gpu", "k", Architecture::Amd64},
                              BuildRequest{"", "k", Architecture::Arm64}}) {
    const auto read = parseBuildRequest(toLine(request));
    ASSERT_TRUE(read) << read.error().str();
    EXPECT_EQ(*read, request);
  }
}

}  // namespace
}  // namespace muster::provision
