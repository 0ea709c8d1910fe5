#include "agent/writer/chunk_writer.h"

#include "pack_server.h"

#include <gmock/gmock.h>

#include <thread>

namespace muster::agent {
namespace {

using testing::HasSubstr;

const test::SamplePack& sample() {
  static const test::SamplePack pack;
  return pack;
}

class ChunkWriterTest : public testing::Test {
 protected:
  ChunkJob job() {
    return {.index = sample().index,
            .pack_url = "http://controller:8080/images/x/pack",
            .target = target_,
            .deadline = std::chrono::seconds(10),
            .first_backoff = std::chrono::milliseconds(1),
            .max_backoff = std::chrono::milliseconds(4),
            .make_http = [this] { return std::make_unique<test::PackClient>(server_); },
            .workers = workers_,
            .clock = clock_,
            .progress = [this](double fraction, const std::string& text) {
              EXPECT_GE(fraction, 0);
              EXPECT_LE(fraction, 1.0001);
              said_ += text + "\n";
            }};
  }
  Result<ChunkReport> run(ChunkJob job) { return test::runAsync(writeAndVerify(std::move(job))); }

  static test::Fault broken(ErrorCode code) {
    return [code](Result<io::HttpResponse>) -> Result<io::HttpResponse> { return fail(code, "connection reset by peer"); };
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
  EXPECT_EQ(target_.data.substr(sample().raw.size()), std::string(4096, 'o')) << "nothing outside is touched";
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
  EXPECT_LT(windowBytes(sample().index), 20u << 20);
}

TEST_F(ChunkWriterTest, goesOnWhenTheServerComesAndGoes) {
  server_.faults = {broken(ErrorCode::Unavailable), broken(ErrorCode::Corrupt), status(503), broken(ErrorCode::Timeout),
                    [](Result<io::HttpResponse> answer) {
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
  EXPECT_EQ(target_.data.substr(bad * kPackChunkBytes, kPackChunkBytes), std::string(kPackChunkBytes, 'o'));
  EXPECT_LE(server_.requests, 20);
}

TEST_F(ChunkWriterTest, aFrameOfTheWrongSizeIsCorrupt) {
  auto odd = job();
  odd.index.chunks[0].sha256 = std::string(64, '0');  // genuine zstd, other content than signed
  const auto report = run(std::move(odd));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
}

TEST_F(ChunkWriterTest, keepsChunksThatAreAlreadyRight) {
  target_.data.replace(0, sample().raw.size(), sample().raw);
  target_.data[5 * kPackChunkBytes + 100] ^= 1;
  auto again = job();
  again.keep_right_chunks = true;
  const auto report = run(std::move(again));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(server_.requests, 1);
  EXPECT_EQ(target_.writes, 1);
  EXPECT_EQ(report->bytes_fetched, sample().index.chunks[5].length);
  EXPECT_GT(report->bytes_skipped, 6 * kPackChunkBytes);
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST_F(ChunkWriterTest, stopsWhenTheDiskFails) {
  target_.fail_at = 2 * kPackChunkBytes;
  const auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("Input/output error"));
}

TEST_F(ChunkWriterTest, noticesADiskThatLosesWhatItAcknowledged) {
  target_.on_flush = [](std::string& data) { data[2 * kPackChunkBytes + 17] ^= 1; };
  auto report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(report.error().text(), HasSubstr(std::to_string(2 * kPackChunkBytes)));
  target_.on_flush = [](std::string& data) { data[1 * kPackChunkBytes + 17] = 'x'; };  // an empty chunk
  report = run(job());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Corrupt);
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
  ChunkJob other{.index = narrow.index, .pack_url = narrow.pack_url, .target = small, .make_http = narrow.make_http, .workers = workers_, .clock = clock_,
                 .progress = narrow.progress};
  const auto report = run(std::move(other));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(server_.requests, 0);
}

/// Over muster's real server and client: ranges of a file, several connections.
TEST_F(ChunkWriterTest, readsFromMustersOwnServer) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "pack", sample().pack));
  asio::io_context control;
  auto server = io::startHttpServer(control.get_executor(), {});
  ASSERT_TRUE(server) << server.error().str();
  const auto file = folder / "pack";
  (*server)->addRoutes({{"GET", "/pack", [file](io::ServerRequest) -> Task<io::ServerResponse> { return test::serveFile(file); }}});
  auto real = job();
  real.pack_url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/pack";
  real.make_http = [] { return io::makeHttpClient(); };
  const auto report = test::runAsync(control, writeAndVerify(std::move(real)));
  (*server)->stop();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST(BlockTarget, aFileIsWrittenZeroedAndRead) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "disk", std::string(3u << 20, 'o')));
  auto target = openBlockTarget(folder / "disk");
  ASSERT_TRUE(target) << target.error().str();
  EXPECT_EQ((*target)->sizeBytes(), 3u << 20);
  ASSERT_TRUE((*target)->write(4096, "hello"));
  ASSERT_TRUE((*target)->zero(1u << 20, 1u << 20));
  ASSERT_TRUE((*target)->flush());
  std::string text(5, ' '), zeros(1u << 20, 'x');
  ASSERT_TRUE((*target)->read(4096, text));
  ASSERT_TRUE((*target)->read(1u << 20, zeros));
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(zeros, std::string(1u << 20, '\0'));
  EXPECT_FALSE((*target)->write((3u << 20) - 2, "hello")) << "the end of the disk is its end";
  EXPECT_EQ(openBlockTarget(folder / "missing").error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::agent
