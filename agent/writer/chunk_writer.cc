#include "agent/writer/chunk_writer.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kRequestTimeout{60};
constexpr std::size_t kBodySlackBytes = 64u << 10;   ///< an error page instead of chunks may be this long
constexpr std::size_t kMaxZeroRunChunks = 256;       ///< zeroed in one go; bounds how long one step is silent
constexpr std::size_t kMaxGroupChunks = 64;

/// Chunks [first, last): all zero, or stored one after the other in the pack.
struct Group {
  std::size_t first = 0, last = 0;
  bool zero = false;
};

/// What became of a group whose bytes were here.
struct Applied {
  std::size_t next = 0;               ///< first chunk that is not on the target yet
  std::uint64_t raw_bytes = 0;
  std::optional<Error> error;         ///< why `next` is not the end
  bool corrupt_chunk = false;         ///< fetching again may help
};

bool allZero(const std::string& data) {
  return data.empty() || (data[0] == 0 && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

bool chunkIsRight(const PackIndex& index, std::size_t chunk, const std::string& raw) {
  if (index.chunks[chunk].zero) return allZero(raw);
  return !allZero(raw) && io::sha256Hex(raw) == index.chunks[chunk].sha256;
}

/// Shared by the lanes of one job. Everything but `apply`, `look` and `zeroOut` runs on the control thread.
class Writer {
 public:
  explicit Writer(ChunkJob job) : job_(std::move(job)), sums_(job_.index.chunks.size()), end_(job_.clock.steady() + job_.deadline) {}

  Async<ChunkReport> run() {
    if (job_.target.sizeBytes() < job_.index.size_bytes)
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("the image has {} MiB, its place on the disk only {} MiB", job_.index.size_bytes >> 20, job_.target.sizeBytes() >> 20));
    using namespace asio::experimental::awaitable_operators;
    static_assert(kLanes == 3);
    auto lanes = lane() && lane() && lane();
    auto [a, b, c] = co_await std::move(lanes);
    if (first_error_) co_return fail(std::move(*first_error_));
    for (auto* result : {&a, &b, &c})
      if (!*result) co_return fail(std::move(*result).error());
    co_return report_;
  }

  Async<> verify() {
    std::function<Result<void>()> work = [this]() -> Result<void> {
      TRY_OK(job_.target.flush());
      return sums_.verify(job_.index, job_.target);
    };
    auto op = offload<Result<void>>(job_.workers, std::move(work));
    co_return co_await std::move(op);
  }

 private:
  std::optional<Group> nextGroup() {
    const auto& chunks = job_.index.chunks;
    if (next_ >= chunks.size() || stopped_) return std::nullopt;
    Group group{next_, next_ + 1, chunks[next_].zero};
    std::uint64_t bytes = chunks[next_].length;
    const std::size_t limit = group.zero ? kMaxZeroRunChunks : kMaxGroupChunks;
    while (group.last < chunks.size() && chunks[group.last].zero == group.zero && group.last - group.first < limit &&
           bytes + chunks[group.last].length <= kGroupBytes)
      bytes += chunks[group.last++].length;
    next_ = group.last;
    return group;
  }

  Async<> lane() {
    auto http = job_.make_http();
    while (auto group = nextGroup()) {
      auto work = doGroup(http.get(), *group);
      auto done = co_await std::move(work);
      if (!done) {
        if (!stopped_) first_error_ = done.error();
        stopped_ = true;  // the other lanes end with what they have begun
        co_return done;
      }
      say("writing the image");
    }
    co_return Result<void>();
  }

  Async<> doGroup(io::HttpClient* http, Group group) {
    if (group.zero) {
      auto zeroed = inPool([this, group] { return zeroOut(group); });
      co_return co_await std::move(zeroed);
    }
    if (!job_.keep_right_chunks) {
      auto fetched = fetchAndApply(http, group.first, group.last);
      co_return co_await std::move(fetched);
    }
    auto looked = wrongRuns(group);
    CO_TRY(wrong, co_await std::move(looked));
    for (const Group& run : wrong) {
      auto fetched = fetchAndApply(http, run.first, run.last);
      CO_TRY_OK(co_await std::move(fetched));
    }
    co_return Result<void>();
  }

  Async<> inPool(std::function<Result<void>()> work) {
    auto op = offload<Result<void>>(job_.workers, std::move(work));
    co_return co_await std::move(op);
  }

  Result<void> zeroOut(Group group) {
    const std::uint64_t start = group.first * job_.index.chunk_bytes;
    const std::uint64_t end = (group.last - 1) * job_.index.chunk_bytes + job_.index.rawBytes(group.last - 1);
    TRY_OK(job_.target.zero(start, end - start));
    count(end - start, 0);
    return {};
  }

  /// The runs of chunks in this group that the disk does not hold yet.
  Async<std::vector<Group>> wrongRuns(Group group) {
    std::function<Result<std::vector<Group>>()> work = [this, group] { return look(group); };
    auto op = offload<Result<std::vector<Group>>>(job_.workers, std::move(work));
    co_return co_await std::move(op);
  }

  Result<std::vector<Group>> look(Group group) {
    std::vector<Group> wrong;
    std::string raw;
    const Held held(*this, job_.index.chunk_bytes);
    for (std::size_t i = group.first; i < group.last; ++i) {
      raw.resize(job_.index.rawBytes(i));
      TRY_OK(job_.target.read(i * job_.index.chunk_bytes, raw));
      if (chunkIsRight(job_.index, i, raw)) {
        sums_.remember(i, raw);
        count(0, raw.size());
      } else if (!wrong.empty() && wrong.back().last == i) {
        ++wrong.back().last;
      } else {
        wrong.push_back({i, i + 1, false});
      }
    }
    return wrong;
  }

  /// Fetches and writes [first, last); a chunk that arrives wrong is fetched again, kCorruptRetries times at most.
  Async<> fetchAndApply(io::HttpClient* http, std::size_t first, std::size_t last) {
    int corrupt = 0;
    while (first < last) {
      const auto& chunks = job_.index.chunks;
      const std::uint64_t offset = chunks[first].offset, length = chunks[last - 1].offset + chunks[last - 1].length - offset;
      const Held held(*this, length);
      auto fetching = fetchRange(http, offset, length);
      CO_TRY(bytes, co_await std::move(fetching));
      const std::string* arrived = &bytes;
      std::function<Applied()> work = [this, first, last, arrived] { return apply(first, last, *arrived); };
      auto op = offload<Applied>(job_.workers, std::move(work));
      Applied applied = co_await std::move(op);
      if (applied.error && (!applied.corrupt_chunk || ++corrupt > kCorruptRetries)) co_return fail(std::move(*applied.error));
      if (applied.error) {
        ++report_.retries;
        say(fmt::format("{}; fetching it again", applied.error->text()));
      }
      if (applied.next > first) corrupt = applied.error ? 1 : 0;
      first = applied.next;
    }
    co_return Result<void>();
  }

  /// In the pool. Nothing is written that was not verified.
  Applied apply(std::size_t first, std::size_t last, const std::string& bytes) {
    Applied applied{first, 0, std::nullopt, false};
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    const Held held(*this, job_.index.chunk_bytes);
    std::string raw;
    for (; applied.next < last; ++applied.next) {
      const std::size_t i = applied.next;
      const PackChunk& chunk = job_.index.chunks[i];
      const std::size_t wanted = job_.index.rawBytes(i);
      raw.resize(wanted);
      const std::size_t size =
          ZSTD_decompressDCtx(context.get(), raw.data(), wanted, bytes.data() + (chunk.offset - job_.index.chunks[first].offset), chunk.length);
      if (ZSTD_isError(size) || size != wanted || io::sha256Hex(raw) != chunk.sha256) {
        applied.error = Error(ErrorCode::Corrupt, fmt::format("chunk {} of the image is corrupt as it arrives from {}", i, job_.pack_url));
        applied.corrupt_chunk = true;
        return applied;
      }
      if (auto written = job_.target.write(i * job_.index.chunk_bytes, raw); !written) {
        applied.error = std::move(written).error();
        return applied;
      }
      sums_.remember(i, raw);
      count(wanted, 0);
    }
    return applied;
  }

  /// One range of the pack; asks again with growing pauses until the deadline, since the controller may be restarting.
  Async<std::string> fetchRange(io::HttpClient* http, std::uint64_t offset, std::uint64_t length) {
    auto url = io::Url::parse(job_.pack_url);
    if (!url) co_return fail(std::move(url).error());
    auto pause = job_.first_backoff;
    for (;;) {
      if (stopped_) co_return fail(ErrorCode::Conflict, "stopped, because another part of the image failed");
      io::HttpRequest request;
      request.url = *url;
      request.headers["Range"] = fmt::format("bytes={}-{}", offset, offset + length - 1);
      request.timeout = kRequestTimeout;
      request.max_body_bytes = length + kBodySlackBytes;
      auto sending = http->send(std::move(request));
      auto response = co_await std::move(sending);
      auto fault = judge(response, offset, length);
      if (!fault) {
        report_.bytes_fetched += length;
        co_return std::move(response->body);
      }
      if (!fault->canRetry()) co_return fail(std::move(*fault));
      if (job_.clock.steady() + pause >= end_)
        co_return fail(ErrorCode::Timeout, fmt::format("the image could not be fetched within {} s; last: {}", job_.deadline.count(), fault->str()));
      ++report_.retries;
      say(fmt::format("{}; trying again in {:.1f} s", fault->text(), pause.count() / 1000.0));
      auto wait = job_.clock.sleep(pause);
      co_await std::move(wait);
      pause = std::min(pause * 2, job_.max_backoff);
    }
  }

  /// What is wrong with an answer; nothing, when it is the range. The whole file instead of a short range is accepted as it is.
  std::optional<Error> judge(Result<io::HttpResponse>& response, std::uint64_t offset, std::uint64_t length) const {
    if (!response) {
      const Error& error = response.error();
      // A connection that breaks inside a body is malformed for HTTP and still only a broken connection.
      return Error(error).retryable(error.canRetry() || error.code() == ErrorCode::Corrupt);
    }
    const int status = response->status;
    if (status == 200 && response->body.size() == job_.index.pack_bytes) {
      response->body = response->body.substr(offset, length);
      return std::nullopt;
    }
    if (status == 200) return Error(ErrorCode::InvalidInput, job_.pack_url + ": the server does not answer range requests");
    if (status == 206 && response->body.size() == length) return std::nullopt;
    if (status == 206)
      return Error(ErrorCode::Unavailable, fmt::format("{} bytes of the pack came instead of {}", response->body.size(), length));
    if (status >= 500 || status == 408 || status == 429) return Error(ErrorCode::Unavailable, fmt::format("{} answers {}", job_.pack_url, status));
    return Error(ErrorCode::NotFound, fmt::format("{} answers {}: it does not have this image", job_.pack_url, status));
  }

  /// Image data in memory, for the report and the bound. Also called in the pool.
  class Held {
   public:
    Held(Writer& writer, std::uint64_t bytes) : writer_(writer), bytes_(bytes) {
      const std::lock_guard guard(writer_.mutex_);
      writer_.held_bytes_ += bytes_;
      writer_.report_.peak_buffer_bytes = std::max(writer_.report_.peak_buffer_bytes, writer_.held_bytes_);
    }
    ~Held() {
      const std::lock_guard guard(writer_.mutex_);
      writer_.held_bytes_ -= bytes_;
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    Writer& writer_;
    std::uint64_t bytes_;
  };

  void count(std::uint64_t written, std::uint64_t skipped) {
    const std::lock_guard guard(mutex_);
    report_.bytes_written += written;
    report_.bytes_skipped += skipped;
  }

  void say(const std::string& text) {
    double fraction = 0;
    {
      const std::lock_guard guard(mutex_);
      fraction = static_cast<double>(report_.bytes_written + report_.bytes_skipped) / static_cast<double>(job_.index.size_bytes);
    }
    job_.progress(fraction, text);
  }

  ChunkJob job_;
  ReadBack sums_;
  std::chrono::steady_clock::time_point end_;
  std::size_t next_ = 0;
  bool stopped_ = false;
  std::optional<Error> first_error_;
  std::mutex mutex_;
  std::uint64_t held_bytes_ = 0;
  ChunkReport report_;
};

}  // namespace

std::uint64_t windowBytes(const PackIndex& index) {
  return kLanes * (std::max<std::uint64_t>(kGroupBytes, index.chunk_bytes + (index.chunk_bytes >> 4) + 1024) + index.chunk_bytes);
}

std::uint64_t ReadBack::checksum(std::string_view data) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15ull;
  std::uint64_t lane[4] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + sizeof(lane) <= data.size(); at += sizeof(lane)) {
    std::uint64_t word[4];
    std::memcpy(word, data.data() + at, sizeof(word));
    for (int i = 0; i < 4; ++i) lane[i] = std::rotl((lane[i] ^ word[i]) * kPrime, 29);
  }
  std::uint64_t sum = data.size();
  for (; at < data.size(); ++at) sum = (sum ^ static_cast<unsigned char>(data[at])) * kPrime;
  for (const std::uint64_t value : lane) sum = std::rotl((sum ^ value) * kPrime, 31);
  return sum;
}

Result<void> ReadBack::verify(const PackIndex& index, BlockTarget& target) const {
  std::string raw;
  for (std::size_t i = 0; i < index.chunks.size(); ++i) {
    raw.resize(index.rawBytes(i));
    const std::uint64_t offset = i * index.chunk_bytes;
    TRY_OK(target.read(offset, raw));
    if (index.chunks[i].zero ? !allZero(raw) : checksum(raw) != sums_[i])
      return fail(ErrorCode::Corrupt, fmt::format("the disk does not hold what was written to it (bytes {} to {} of the file system differ when read back): "
                                                  "replace the disk", offset, offset + raw.size()));
  }
  return {};
}

Async<ChunkReport> writeChunks(ChunkJob job) {
  Writer writer(std::move(job));
  auto work = writer.run();
  co_return co_await std::move(work);
}

Async<ChunkReport> writeAndVerify(ChunkJob job) {
  auto progress = job.progress;
  Writer writer(std::move(job));
  auto work = writer.run();
  CO_TRY(report, co_await std::move(work));
  progress(1, "reading the disk back");
  auto check = writer.verify();
  CO_TRY_OK(co_await std::move(check));
  co_return report;
}

}  // namespace muster::agent
