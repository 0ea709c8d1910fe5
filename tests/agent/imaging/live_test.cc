// SPDX-License-Identifier: Apache-2.0
// Live images as the agent takes them: into memory, and never onto a disk. Mounting is shown by the
// VM test.
#include "agent/imaging/live.h"
#include "agent/imaging/fetch_index.h"

#include "tests/agent/imaging/pack_server.h"
#include "tests/run_async.h"
#include "wire/task_reason.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

wire::PackIndex liveImage(std::uint64_t size_bytes) {
  wire::PackIndex index;
  index.kind = wire::PackKind::Live;
  index.name = "small";
  index.size_bytes = size_bytes;
  return index;
}

TEST(LiveImage, mustFitIntoWhatIsFree) {
  const auto index = liveImage(1ull << 30);
  EXPECT_TRUE(checkMemory(index, (1ull << 30) + wire::kLiveRoomBytes));
  const auto refused = checkMemory(index, (1ull << 30) + wire::kLiveRoomBytes - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(refused.error().text(), HasSubstr("1535 MiB of memory are free, the live image small "
                                                "takes 1024 MiB and its system 512 MiB beside it"));
  EXPECT_FALSE(checkMemory(index, 0)) << "a machine that does not tell";
}

/// Answers every request with one text.
class OneAnswer final : public io::HttpClient {
 public:
  explicit OneAnswer(std::string body) : body_(std::move(body)) {}
  Async<io::HttpResponse> send(io::HttpRequest) override {
    io::HttpResponse response;
    response.status = 200;
    response.body = body_;
    co_return response;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return fail(ErrorCode::Internal, "not asked for");
  }
  std::string peerFingerprint() const override { return {}; }

 private:
  std::string body_;
};

/// A host answers with its text, or is away.
class Hosts final : public io::HttpClient {
 public:
  Hosts(std::map<std::string, std::string> answers, std::vector<std::string>& asked)
      : answers_(std::move(answers)), asked_(asked) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override {
    asked_.push_back(request.url.str());
    const auto answer = answers_.find(request.url.host);
    if (answer == answers_.end())
      co_return fail(ErrorCode::Unavailable, request.url.host + " is away");
    io::HttpResponse response;
    response.status = answer->second.empty() ? 404 : 200;
    response.body = answer->second;
    co_return response;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return fail(ErrorCode::Internal, "not asked for");
  }
  std::string peerFingerprint() const override { return {}; }

 private:
  std::map<std::string, std::string> answers_;
  std::vector<std::string>& asked_;
};

class WrongKind : public ::testing::Test {
 protected:
  /// Both tasks fetch the index first; it is signed, and of the wrong kind.
  void offer(wire::PackKind kind) {
    test::SamplePack sample(2);
    sample.index.kind = kind;
    if (kind == wire::PackKind::Live) sample.index.root_fs.clear();
    params_.index_url = params_.pack_url = "http://controller/index.json";
    params_.digest = wire::digestOf(sample.index);
    params_.signing_public_pem = key_.public_pem;
    index_ = *wire::signedJson(sample.index, key_);
  }
  WriterDeps deps() {
    return {[text = index_] { return std::make_unique<OneAnswer>(text); },
            workers_,
            clock_,
            [] { return identity(); },
            [](double, const std::string&) {},
            ""};
  }
  static Async<InstalledIdentity> identity() {
    co_return fail(ErrorCode::Internal, "nothing is installed here");
  }

  test::TempFolder folder_;
  io::SigningKey key_ = *io::SigningKey::generate();
  wire::WriteImageParams params_;
  std::string index_;
  Workers workers_{2};
  FakeClock clock_;
};

/// The host that ordered the image has died: the other one has the same.
TEST_F(WrongKind, theIndexComesFromAMirrorWhileTheControllerIsAway) {
  offer(wire::PackKind::Live);
  params_.index_url = "http://a/images/d/index.json";
  params_.mirror_urls = {"http://corrupt/images/d/pack", "http://b/images/d/pack"};
  std::vector<std::string> asked;
  const auto with = [&](std::map<std::string, std::string> answers) {
    asked.clear();
    auto it = deps();
    it.make_http = [&asked, answers] { return std::make_unique<Hosts>(answers, asked); };
    return it;
  };
  const auto end = clock_.steady() + std::chrono::milliseconds(1);
  const auto fetch = [&](std::map<std::string, std::string> answers) {
    return test::runAsync(fetchIndex(params_, with(std::move(answers)), end));
  };
  const auto found = fetch({{"corrupt", "not the index"}, {"b", index_}});
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(wire::digestOf(*found), params_.digest);
  EXPECT_THAT(asked, testing::ElementsAre("http://a:80/images/d/index.json",
                                          "http://corrupt:80/images/d/index.json",
                                          "http://b:80/images/d/index.json"));

  const auto nobody = fetch({{"corrupt", ""}});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(nobody.error().str(),
              testing::AllOf(HasSubstr("a is away"),
                             HasSubstr("corrupt:80/images/d/index.json answers 404"),
                             HasSubstr("b is away")));
  const auto gone = fetch({{"a", ""}, {"b", index_}});
  ASSERT_FALSE(gone) << "a controller without the image is not passed over";
  EXPECT_EQ(gone.error().code(), ErrorCode::NotFound);
}

TEST_F(WrongKind, aLiveImageIsWrittenToNoDisk) {
  offer(wire::PackKind::Live);
  params_.wipe_allowed = true;
  const auto written = test::runAsync(writeImage(params_, deps(), std::chrono::seconds(60)));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().str(), HasSubstr("runs in memory and is written to no disk"));
  EXPECT_TRUE(written.error().has(wire::TaskReason::DisksUntouched))
      << "its installed system would lose its key";
}

TEST_F(WrongKind, anImageForADiskIsNotStartedInMemory) {
  offer(wire::PackKind::RootFs);
  const auto started =
      test::runAsync(startLive(params_, deps(), LivePlaces{folder_ / "live", folder_ / "osrelease"},
                               std::chrono::seconds(60)));
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().str(), HasSubstr("is not live: it must be written to a disk"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "live"));
}

}  // namespace
}  // namespace muster::agent
