// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/existing_content.h"
#include "agent/imaging/read_back.h"

#include "pack_server.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>

#include <thread>

namespace muster::agent {
namespace {

using testing::HasSubstr;

using test::sample;

class ChunkWriterTest : public testing::Test {
 protected:
  ChunkJob job() {
    return {.index = sample().index,
            .pack_url = "http://controller:8080/images/x/pack",
            .mirror_urls = {},
            .target = target_,
            .deadline = std::chrono::seconds(10),
            .first_backoff = std::chrono::milliseconds(1),
            .max_backoff = std::chrono::milliseconds(4),
            .make_http = [this] { return std::make_unique<test::PackClient>(server_); },
            .workers = workers_,
            .clock = clock_,
            .progress =
                [this](double fraction, const std::string& text) {
                  EXPECT_GE(fraction, 0);
                  EXPECT_LE(fraction, 1.0001);
                  said_ += text + "\n";
                }};
  }
  Result<ChunkReport> run(ChunkJob job) { return test::runAsync(writeAndVerify(std::move(job))); }

  static test::Fault broken(ErrorCode code) {
    return [code](Result<io::HttpResponse>) -> Result<io::HttpResponse> {
      return fail(code, "connection reset by peer");
    };
  }
  static test::Fault status(int number) {
    return [number](Result<io::HttpResponse> answer) {
      answer->status = number;
      answer->body = "busy";
      return answer;
    };
  }
  static test::Fault flipped() {
    return [](Result<io::HttpResponse> answer) {
      answer->body[answer->body.size() / 2] ^= 0x40;
      return answer;
    };
  }

  test::PackServer server_{sample().pack, {}};
  test::MemoryTarget target_{sample().raw.size() + 4096};
  Workers workers_{3};
  SystemClock clock_;
  std::string said_;
};

TEST_F(ChunkWriterTest, writesTheImageOverOldData) {
  const auto report = run(job());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
  EXPECT_EQ(target_.data.substr(sample().raw.size()), std::string(4096, 'o'))
      << "nothing outside is touched";
  EXPECT_EQ(report->bytes_written, sample().raw.size());
  EXPECT_EQ(report->bytes_fetched, sample().pack.size());
  EXPECT_EQ(report->retries, 0);
}

TEST_F(ChunkWriterTest, neverHoldsMoreThanItsWindow) {
  const auto report = run(job());
  ASSERT_TRUE(report);
  EXPECT_GT(report->peak_buffer_bytes, 0u);
  EXPECT_LE(report->peak_buffer_bytes, windowBytes(sample().index));
  EXPECT_LE(server_.largest_answer, kGroupBytes);
  EXPECT_LE(windowBytes(sample().index), 32u << 20);
}

TEST_F(ChunkWriterTest, goesOnWhenTheServerComesAndGoes) {
  server_.faults = {broken(ErrorCode::Unavailable), broken(ErrorCode::Corrupt), status(503),
                    broken(ErrorCode::Timeout), [](Result<io::HttpResponse> answer) {
                      answer->body.resize(answer->body.size() / 2);  // a short read
                      return answer;
                    }};
  const auto report = run(job());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->retries, 5);
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
  EXPECT_THAT(said_, HasSubstr("trying again"));
}

TEST_F(ChunkWriterTest, givesUpAtItsDeadlineAndSaysWhy) {
  for (int i = 0; i < 10000; ++i) server_.faults.push_back(broken(ErrorCode::Unavailable));
  auto hopeless = job();
  hopeless.deadline = std::chrono::seconds(0);
  const auto report = run(std::move(hopeless));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(report.error().text(), HasSubstr("connection reset"));
  EXPECT_EQ(target_.writes, 0);
}

TEST_F(ChunkWriterTest, fetchesACorruptChunkAgain) {
  server_.faults = {flipped()};
  const auto report = run(job());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->retries, 1);
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST_F(ChunkWriterTest, neverWritesAChunkThatIsCorruptAtTheSource) {
  const std::size_t bad = 3;
  server_.pack[sample().index.chunks[bad].offset + 5000] ^= 1;
  const auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(report.error().text(), HasSubstr("chunk 3"));
  EXPECT_EQ(target_.data.substr(bad * wire::kPackChunkBytes, wire::kPackChunkBytes),
            std::string(wire::kPackChunkBytes, 'o'));
  EXPECT_LE(server_.requests, 20);
}

TEST_F(ChunkWriterTest, aFrameOfTheWrongSizeIsCorrupt) {
  const std::vector<std::function<void(wire::PackIndex&)>> signed_otherwise{
      [](wire::PackIndex& i) {
        i.chunks[0].packed_sha256 = std::string(64, '0');
      },                                                   // genuine zstd, other bytes than signed
      [](wire::PackIndex& i) { i.chunks[0].quick ^= 1; },  // unpacked to something else
      [](wire::PackIndex& i) { i.format = 1, i.chunks[0].sha256 = std::string(64, '0'); }};
  for (std::size_t n = 0; n < signed_otherwise.size(); ++n) {
    auto odd = job();
    signed_otherwise[n](odd.index);
    const auto report = run(std::move(odd));
    ASSERT_FALSE(report) << n;
    EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
    EXPECT_EQ(target_.data.substr(0, wire::kPackChunkBytes),
              std::string(wire::kPackChunkBytes, 'o'))
        << n;
  }
}

TEST_F(ChunkWriterTest, writesAPackOfTheFirstFormat) {
  auto old = job();
  old.index.format = 1;
  for (auto& chunk : old.index.chunks) chunk.packed_sha256.clear(), chunk.quick = 0;
  const auto text = *wire::signedJson(old.index, *io::SigningKey::generate());
  EXPECT_EQ(text.find("packed\""), std::string::npos) << "as it was signed then";
  auto read = wire::readIndex(text);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(wire::digestOf(*read), wire::digestOf(old.index));
  old.index = *read;
  const auto report = run(std::move(old));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST_F(ChunkWriterTest, keepsChunksThatAreAlreadyRight) {
  target_.data.replace(0, sample().raw.size(), sample().raw);
  target_.data[5 * wire::kPackChunkBytes + 100] ^= 1;
  auto again = job();
  again.keep_matching_chunks = true;
  const auto report = run(std::move(again));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(server_.requests, 1);
  EXPECT_EQ(target_.writes, 1);
  EXPECT_EQ(report->bytes_fetched, sample().index.chunks[5].length);
  EXPECT_GT(report->bytes_skipped, 6 * wire::kPackChunkBytes);
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST_F(ChunkWriterTest, aBadSectorOfWhatWasThereIsWrittenAndReadBack) {
  target_.data.replace(0, sample().raw.size(), sample().raw);
  target_.unreadable = {3 * wire::kPackChunkBytes + 4096,
                        4 * wire::kPackChunkBytes};  // an empty chunk is the second
  auto again = job();
  again.keep_matching_chunks = true;
  const auto report = run(std::move(again));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->bytes_fetched, sample().index.chunks[3].length);
  EXPECT_TRUE(target_.unreadable.empty());
}

TEST_F(ChunkWriterTest, aDiskThatCannotBeReadInManyPlacesIsBroken) {
  wire::PackIndex index;
  index.chunk_bytes = 4096;
  index.chunks.resize(kMaxUnreadableChunks + 10);
  index.size_bytes = index.chunks.size() * index.chunk_bytes;
  for (auto& chunk : index.chunks) chunk.zero = true;
  test::MemoryTarget disk(index.size_bytes);
  disk.data.assign(index.size_bytes, '\0');
  for (std::size_t i = 0; i < kMaxUnreadableChunks; ++i)
    disk.unreadable.insert(i * index.chunk_bytes);
  std::atomic<std::size_t> right = 0;
  const auto look = [&] {
    return scanContent(
        index, disk, [&](std::size_t, std::string_view) { ++right; }, [](std::size_t) {});
  };
  ASSERT_TRUE(look());
  EXPECT_EQ(right, 10u);
  disk.unreadable.insert(index.size_bytes - 1);
  const auto broken = look();
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().text(), HasSubstr("Input/output error"));
}

TEST_F(ChunkWriterTest, stopsWhenTheDiskFails) {
  target_.fail_at = 2 * wire::kPackChunkBytes;
  const auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("Input/output error"));
}

TEST_F(ChunkWriterTest, noticesADiskThatLosesWhatItAcknowledged) {
  target_.on_flush = [](std::string& data) { data[2 * wire::kPackChunkBytes + 17] ^= 1; };
  auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(report.error().text(), HasSubstr(std::to_string(2 * wire::kPackChunkBytes)));
  target_.on_flush = [](std::string& data) {
    data[1 * wire::kPackChunkBytes + 17] = 'x';
  };  // an empty chunk
  report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
}

/// A disk whose reads come from the medium, as with O_DIRECT: it is read back while it is written.
class MediumTest : public testing::Test {
 protected:
  static constexpr std::size_t kChunks = 140;  ///< more than lies between writing and reading back
  class Medium final : public BlockTarget {
   public:
    explicit Medium(std::uint64_t bytes, std::uint64_t really)
        : data(bytes, 'o'), really_(really) {}
    std::uint64_t sizeBytes() const override { return data.size(); }
    bool readsMedium() const override { return true; }
    Result<void> write(std::uint64_t offset, std::string_view bytes) override {
      const std::lock_guard guard(mutex_);
      std::copy(bytes.begin(), bytes.end(),
                data.begin() + static_cast<std::ptrdiff_t>(offset % really_));
      if (spoil) spoil(data);
      return {};
    }
    Result<void> zero(std::uint64_t offset, std::uint64_t length) override {
      return write(offset, std::string(length, '\0'));
    }
    Result<void> read(std::uint64_t offset, std::span<char> out) override {
      const std::lock_guard guard(mutex_);
      ++reads;
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset % really_), out.size(),
                  out.begin());
      return {};
    }
    Result<void> flush() override { return {}; }
    std::string data;
    std::function<void(std::string&)> spoil;
    std::atomic<std::size_t> reads = 0;

   private:
    std::uint64_t really_;
    std::mutex mutex_;
  };

  /// As the lanes do, but never faster than what is behind is read back.
  void write(Medium& medium, ReadBack& back) {
    for (std::size_t i = 0; i < kChunks; ++i) {
      const std::string raw(wire::kPackChunkBytes, static_cast<char>('A' + i % 26 + i / 26));
      ASSERT_TRUE(medium.write(i * wire::kPackChunkBytes, raw));
      back.remember(i, raw, wire::quickSum(raw));
      while (medium.reads + kLag < i + 1 && back.soFar()) std::this_thread::yield();
    }
  }
  static constexpr std::size_t kLag = kReadBackLagBytes / wire::kPackChunkBytes;
  wire::PackIndex index_ = [] {
    wire::PackIndex index;
    index.size_bytes = kChunks * wire::kPackChunkBytes;
    index.chunks.resize(kChunks);
    return index;
  }();
};

TEST_F(MediumTest, isReadBackWhileItIsWritten) {
  Medium medium(index_.size_bytes, index_.size_bytes);
  ReadBack back(index_, medium);
  write(medium, back);
  EXPECT_EQ(medium.reads, kChunks - kLag);
  ASSERT_TRUE(medium.flush());
  ASSERT_TRUE(back.finish());
  EXPECT_EQ(medium.reads, kChunks + (kChunks + kSampledChunks - 1) / kSampledChunks)
      << "each whole, and of some the first block again";
}

TEST_F(MediumTest, thatIsSmallerThanItSaysIsFoundOut) {
  Medium small(index_.size_bytes,
               index_.size_bytes -
                   4 * wire::kPackChunkBytes);  // what is last lies over what was read back first
  ReadBack back(index_, small);
  write(small, back);
  EXPECT_TRUE(back.soFar()) << "each chunk was right when it was read back the first time";
  ASSERT_TRUE(small.flush());
  const auto report = back.finish();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
}

TEST_F(MediumTest, thatBendsABitIsFoundOutBeforeTheEnd) {
  Medium bent(index_.size_bytes, index_.size_bytes);
  bent.spoil = [](std::string& data) { data[3 * wire::kPackChunkBytes + 70000] = 'x'; };
  ReadBack back(index_, bent);
  write(bent, back);
  while (back.soFar()) std::this_thread::yield();  // nothing more is written, flushed or asked for
  EXPECT_THAT(back.soFar().error().text(),
              HasSubstr(fmt::format("bytes {} to", 3 * wire::kPackChunkBytes)));
}

TEST_F(ChunkWriterTest, saysWhenTheServerCannotHelp) {
  server_.faults = {status(404), status(404), status(404)};
  auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::NotFound);
  server_.faults.clear();
  server_.ranges = false;
  server_.pack += "x";
  report = run(job());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("range"));
}

TEST_F(ChunkWriterTest, refusesAPlaceThatIsTooSmall) {
  test::MemoryTarget small(1u << 20);
  auto narrow = job();
  ChunkJob other{.index = narrow.index,
                 .pack_url = narrow.pack_url,
                 .mirror_urls = {},
                 .target = small,
                 .make_http = narrow.make_http,
                 .workers = workers_,
                 .clock = clock_,
                 .progress = narrow.progress};
  const auto report = run(std::move(other));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(server_.requests, 0);
}

/// Three servers with the same pack, told apart by their URL.
class MirrorsTest : public ChunkWriterTest {
 protected:
  class ByHost final : public io::HttpClient {
   public:
    explicit ByHost(MirrorsTest& test) : test_(test) {}
    Async<io::HttpResponse> send(io::HttpRequest request) override {
      co_return test_.servers_.at(request.url.host).answer(request);
    }
    Async<io::HttpResponse> fetch(io::HttpRequest,
                                  std::function<Result<void>(std::string_view)>) override {
      co_return fail(ErrorCode::Internal, "ranges only");
    }
    std::string peerFingerprint() const override { return {}; }

   private:
    MirrorsTest& test_;
  };

  ChunkJob jobOfThree() {
    auto job = this->job();
    job.index = big_.index;
    job.pack_url = "http://a/pack";
    job.mirror_urls = {"http://b/pack", "http://c/pack", "http://a/pack"};
    job.make_http = [this] { return std::make_unique<ByHost>(*this); };
    return job;
  }
  bool written() const { return target_.data.substr(0, sample().raw.size()) == sample().raw; }
  void always(const std::string& host, const test::Fault& fault) {
    servers_[host].faults.assign(1000, fault);
  }

  const test::SamplePack& big_ = sample();
  std::map<std::string, test::PackServer> servers_{
      {"a", {sample().pack, {}}}, {"b", {sample().pack, {}}}, {"c", {sample().pack, {}}}};
};

TEST_F(MirrorsTest, areAllAskedAtOnce) {
  const auto report = run(jobOfThree());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(written());
  EXPECT_TRUE(report->dropped_mirrors.empty());
  int asked = 0;
  for (const auto& [host, server] : servers_) asked += server.requests > 0;
  EXPECT_GE(asked, 2);
}

TEST_F(MirrorsTest, oneThatLiesIsDroppedAndNamed) {
  always("b", flipped());
  const auto report = run(jobOfThree());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(written());
  ASSERT_EQ(report->dropped_mirrors.size(), 1u);
  EXPECT_EQ(report->dropped_mirrors[0].url, "http://b/pack");
  EXPECT_THAT(report->dropped_mirrors[0].why, HasSubstr("corrupt"));
  EXPECT_LE(servers_["b"].requests, kLanes) << "not asked again";
}

TEST_F(MirrorsTest, oneThatHasAnotherImageOrDiesIsDropped) {
  always("b", status(404));
  always("c", broken(ErrorCode::Unavailable));
  const auto report = run(jobOfThree());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(written());
  EXPECT_GE(report->dropped_mirrors.size(), 1u);
}

TEST_F(MirrorsTest, whenAllLieTheImageIsCorruptAndNothingWrongIsWritten) {
  for (const char* host : {"a", "b", "c"}) always(host, flipped());
  const auto report = run(jobOfThree());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
}

/// The network is cut for a minute in the middle; the clock is a virtual one.
TEST(ChunkWriterTime, goesOnAfterTheNetworkWasCutForAMinute) {
  test::VirtualLoop loop;
  test::PackServer server{sample().pack, {}};
  test::MemoryTarget target{sample().raw.size()};
  const auto begun = loop.clock.steady();
  const auto cut_from = begun + std::chrono::seconds(0),
             cut_until = begun + std::chrono::seconds(60);
  int refused = 0;
  for (int i = 0; i < 1000; ++i)
    server.faults.push_back([&, i](Result<io::HttpResponse> answer) -> Result<io::HttpResponse> {
      const auto now = loop.clock.steady();
      if (i == 0 || now < cut_from || now >= cut_until)
        return answer;  // one answer comes before the cut
      ++refused;
      return fail(ErrorCode::Unavailable, "no route to host");
    });
  ChunkJob job{.index = sample().index,
               .pack_url = "http://a/pack",
               .mirror_urls = {"http://b/pack"},
               .target = target,
               .deadline = std::chrono::seconds(600),
               .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
               .workers = loop.workers,
               .clock = loop.clock,
               .progress = [](double, const std::string&) {}};
  const auto report = loop.run(writeAndVerify(std::move(job)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_GT(refused, 5);
  EXPECT_GE(loop.clock.steady() - begun, std::chrono::seconds(60));
  EXPECT_TRUE(target.data == sample().raw);
  EXPECT_LE(report->dropped_mirrors.size(), 1u) << "a cut network is nobody's fault for long";
}

TEST(ImageMirrors, fasterOnesAreAskedMore) {
  ImageMirrors mirrors({"http://slow", "http://fast"});
  std::map<std::string, int> asked;
  for (int i = 0; i < 40; ++i) {
    const auto mirror = mirrors.pick();
    ++asked[mirrors.url(mirror)];
    mirrors.delivered(mirror, 1'000'000, mirrors.url(mirror) == "http://fast" ? 0.01 : 1.0);
  }
  EXPECT_GT(asked["http://fast"], 30);
  EXPECT_GE(asked["http://slow"], 1);
}

TEST(ImageMirrors, theLastOneIsNeverDroppedAndSilentOnesComeBack) {
  ImageMirrors mirrors({"http://a", "http://b"});
  const auto fail_twice = [&mirrors](std::size_t mirror) {
    bool dropped = false;
    for (int i = 0; i < 2; ++i)
      dropped = mirrors.failed(mirror, ImageMirrors::Fault::Silent, "no route");
    return dropped;
  };
  EXPECT_TRUE(fail_twice(0));
  EXPECT_EQ(mirrors.usable(), 1u);
  EXPECT_FALSE(fail_twice(1)) << "the last one stays";
  EXPECT_EQ(mirrors.usable(), 2u) << "then it was the network";
  EXPECT_TRUE(mirrors.markCorrupt(0, "corrupt"));
  EXPECT_FALSE(mirrors.failed(1, ImageMirrors::Fault::Silent, "no route"));
  EXPECT_FALSE(mirrors.failed(1, ImageMirrors::Fault::Silent, "no route"));
  EXPECT_EQ(mirrors.usable(), 1u) << "what was corrupt does not come back";
  ASSERT_EQ(mirrors.dropped().size(), 1u);
  EXPECT_EQ(mirrors.dropped()[0].url, "http://a");
}

/// Over muster's real server and client: ranges of a file, several connections.
TEST_F(ChunkWriterTest, readsFromMustersOwnServer) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "pack", sample().pack));
  asio::io_context control;
  auto server = io::startHttpServer(control.get_executor(), {});
  ASSERT_TRUE(server) << server.error().str();
  const auto file = folder / "pack";
  (*server)->addRoutes({{"GET", "/pack", [file](io::ServerRequest) -> Task<io::ServerResponse> {
                           return test::serveFile(file);
                         }}});
  auto real = job();
  real.pack_url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/pack";
  real.make_http = [] { return io::makeHttpClient(); };
  const auto report = test::runAsync(control, writeAndVerify(std::move(real)));
  (*server)->stop();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

}  // namespace
}  // namespace muster::agent
