// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/chunk_writer.h"

#include "agent/imaging/existing_content.h"
#include "agent/imaging/read_back.h"

#include <fmt/format.h>
#include <zstd.h>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <mutex>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kRequestTimeout{60};
constexpr std::chrono::seconds kRequestTimeoutBesideOthers{
    15};  ///< when another mirror can be asked instead
constexpr std::size_t kBodySlackBytes =
    64u << 10;  ///< an error page instead of chunks may be this long
constexpr std::size_t kMaxZeroRunChunks =
    256;  ///< zeroed in one go; bounds how long one step is silent
constexpr std::size_t kMaxGroupChunks = 64;

/// Chunks [first, last): all zero, or stored one after the other in the pack.
struct Group {
  std::size_t first = 0, last = 0;
  bool zero = false;
};

/// What became of a group whose bytes were here.
struct Applied {
  std::size_t next = 0;        ///< first chunk that is not on the target yet
  std::optional<Error> error;  ///< why `next` is not the end
  bool corrupt_chunk = false;  ///< fetching again may help
};

/// Bytes of the pack, and who gave them.
struct Fetched {
  std::string bytes;
  std::size_t mirror = 0;
};

/// What is wrong with an answer, and whether the mirror only cannot answer now.
struct Fault {
  Error error;
  ImageMirrors::Fault kind;
};

std::vector<std::string> allUrls(const ChunkJob& job) {
  std::vector<std::string> urls = job.mirror_urls;
  urls.insert(urls.begin(), job.pack_url);
  return urls;
}

std::uint64_t runBytes(const wire::PackIndex& index) {
  return std::max(kRunBytes / index.chunk_bytes, std::uint64_t(1)) * index.chunk_bytes;
}

/// Shared by the lanes of one job. Everything but `apply`, `look`, `zeroOut` and what they call
/// runs on the control thread.
class Writer {
 public:
  explicit Writer(ChunkJob job)
      : job_(std::move(job)),
        mirrors_(allUrls(job_)),
        read_back_(job_.index, job_.target),
        right_(job_.index.chunks.size(), 0),
        end_(job_.clock.steady() + job_.deadline) {}

  Async<ChunkReport> run() {
    if (job_.target.sizeBytes() < job_.index.size_bytes)
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("the image has {} MiB, its place on the disk only {} MiB",
                                 job_.index.size_bytes >> 20, job_.target.sizeBytes() >> 20));
    if (job_.keep_matching_chunks) {
      CO_TRY_OK(co_await lookAtAll());
    }
    if (job_.scanned) job_.scanned(job_.index, right_);
    using namespace asio::experimental::awaitable_operators;
    static_assert(kLanes == 4);
    auto [a, b, c, d] = co_await (lane() && lane() && lane() && lane());
    report_.dropped_mirrors = mirrors_.dropped();
    if (first_error_) co_return fail(std::move(*first_error_));
    for (auto* result : {&a, &b, &c, &d})
      if (!*result) co_return fail(std::move(*result).error());
    co_return report_;
  }

  Async<> verify() {
    CO_TRY_OK(co_await inPool([this] { return job_.target.flush(); }));
    co_return co_await inPool([this] { return read_back_.finish(); });
  }

 private:
  std::optional<Group> nextGroup() {
    const auto& chunks = job_.index.chunks;
    while (next_ < chunks.size() && right_[next_]) ++next_;
    if (next_ >= chunks.size() || stopped_) return std::nullopt;
    Group group{next_, next_ + 1, chunks[next_].zero};
    std::uint64_t bytes = chunks[next_].length;
    const std::size_t limit = group.zero ? kMaxZeroRunChunks : kMaxGroupChunks;
    while (group.last < chunks.size() && !right_[group.last] &&
           chunks[group.last].zero == group.zero && group.last - group.first < limit &&
           bytes + chunks[group.last].length <= kGroupBytes)
      bytes += chunks[group.last++].length;
    next_ = group.last;
    return group;
  }

  /// The connections of one lane, one a mirror.
  using Connections = std::vector<std::unique_ptr<io::HttpClient>>;

  Async<> lane() {
    Connections http(mirrors_.size());
    while (auto group = nextGroup()) {
      auto done = co_await doGroup(&http, *group);
      if (!done) {
        if (!stopped_) first_error_ = done.error();
        stopped_ = true;  // the other lanes end with what they have begun
        co_return done;
      }
      notify("writing the image");
    }
    co_return Result<void>();
  }

  Async<> doGroup(Connections* http, Group group) {
    if (group.zero) {
      co_return co_await inPool([this, group] { return zeroOut(group); });
    }
    co_return co_await fetchAndApply(http, group.first, group.last);
  }

  Async<> inPool(std::function<Result<void>()> work) {
    co_return co_await offload<Result<void>>(job_.workers, std::move(work));
  }

  Result<void> zeroOut(Group group) {
    const std::uint64_t start = group.first * job_.index.chunk_bytes;
    const std::uint64_t end =
        (group.last - 1) * job_.index.chunk_bytes + job_.index.rawBytes(group.last - 1);
    TRY_OK(job_.target.zero(start, end - start));
    for (std::size_t i = group.first; i < group.last; ++i) read_back_.rememberZero(i);
    count(end - start, 0);
    return {};
  }

  /// Finds out what the disk holds already, before anything is fetched.
  Async<> lookAtAll() {
    auto home = co_await asio::this_coro::executor;
    co_return co_await inPool([this, home] { return look(home); });
  }

  Result<void> look(const asio::any_io_executor& home) {
    const Held held(*this, readersFor(job_.index) * job_.index.chunk_bytes);
    const auto right = [this](std::size_t chunk, std::string_view raw) {
      right_[chunk] = 1;
      if (!job_.target.readsMedium())
        job_.index.chunks[chunk].zero ? read_back_.rememberZero(chunk)
                                      : read_back_.remember(chunk, raw, wire::quickSum(raw));
      count(0, raw.size());
    };
    return scanContent(job_.index, job_.target, right, [this, &home](std::size_t) {
      asio::post(home, [this] { notify("looking at what the disk holds"); });
    });
  }

  /// Fetches and writes [first, last). A chunk that arrives wrong is fetched again: from another
  /// mirror as long as there is one, from the last one kCorruptRetries times.
  Async<> fetchAndApply(Connections* http, std::size_t first, std::size_t last) {
    int corrupt = 0;
    while (first < last) {
      const auto& chunks = job_.index.chunks;
      const std::uint64_t offset = chunks[first].offset,
                          length = chunks[last - 1].offset + chunks[last - 1].length - offset;
      const Held held(*this, length);
      CO_TRY(fetched, co_await fetchRange(http, offset, length));
      const Fetched* arrived = &fetched;
      std::function<Applied()> work = [this, first, last, arrived] {
        return apply(first, last, *arrived);
      };
      Applied applied = co_await offload<Applied>(job_.workers, std::move(work));
      if (applied.next > first) corrupt = 0;
      first = applied.next;
      if (!applied.error) continue;
      const bool another =
          applied.corrupt_chunk && mirrors_.markCorrupt(fetched.mirror, applied.error->text());
      if (!applied.corrupt_chunk || (!another && ++corrupt > kCorruptRetries))
        co_return fail(std::move(*applied.error));
      ++report_.retries;
      notify(fmt::format("{}; fetching it again{}", applied.error->text(),
                         another ? " from another mirror" : ""));
    }
    co_return Result<void>();
  }

  /// In the pool. Nothing is written that was not verified.
  Applied apply(std::size_t first, std::size_t last, const Fetched& fetched) {
    Applied applied{first, std::nullopt, false};
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                       ZSTD_freeDCtx);
    const Held held(*this, runBytes(job_.index));
    AlignedBuffer run(runBytes(job_.index));
    while (applied.next < last && !applied.error) {
      const std::size_t begin = applied.next,
                        end = unpackRun(context.get(), first, last, fetched, run, applied);
      if (begin == end) break;
      if (auto written = writeRun(begin, end, run); !written) {
        applied.error = std::move(written).error();
        applied.corrupt_chunk = false;
        break;
      }
      applied.next = end;
    }
    return applied;
  }

  /// Unpacks from applied.next on, as much as fits into `run`. The first chunk that is not in it.
  std::size_t unpackRun(ZSTD_DCtx* context, std::size_t first, std::size_t last,
                        const Fetched& fetched, AlignedBuffer& run, Applied& applied) {
    std::size_t i = applied.next, filled = 0;
    for (; i < last && filled + job_.index.chunk_bytes <= runBytes(job_.index); ++i) {
      const wire::PackChunk& chunk = job_.index.chunks[i];
      const std::string_view packed(
          fetched.bytes.data() + (chunk.offset - job_.index.chunks[first].offset), chunk.length);
      const std::size_t size = job_.index.rawBytes(i);
      run.resize(filled + size);
      if (!unpack(context, i, packed, run.span().subspan(filled, size))) {
        applied.error = Error(ErrorCode::Corrupt,
                              fmt::format("chunk {} of the image is corrupt as it arrives from {}",
                                          i, mirrors_.url(fetched.mirror)));
        applied.corrupt_chunk = true;
        run.resize(filled);
        break;
      }
      filled += size;
    }
    return i;
  }

  /// Whether the bytes are the chunk that was signed. With the digest of what is stored only that
  /// has to be hashed slowly; what comes out of it can then differ only by a fault of this machine,
  /// which the quick sum finds.
  bool unpack(ZSTD_DCtx* context, std::size_t chunk, std::string_view packed,
              std::span<char> raw) const {
    const wire::PackChunk& wanted = job_.index.chunks[chunk];
    if (job_.index.format > 1 && io::sha256Hex(packed) != wanted.packed_sha256) return false;
    const std::size_t size =
        ZSTD_decompressDCtx(context, raw.data(), raw.size(), packed.data(), packed.size());
    if (ZSTD_isError(size) || size != raw.size()) return false;
    const std::string_view bytes(raw.data(), raw.size());
    return job_.index.format > 1 ? wire::quickSum(bytes) == wanted.quick
                                 : io::sha256Hex(bytes) == wanted.sha256;
  }

  /// Chunks [begin, end), which lie in `run`. Also tells what was found of chunks that were read
  /// back meanwhile.
  Result<void> writeRun(std::size_t begin, std::size_t end, AlignedBuffer& run) {
    TRY_OK(job_.target.write(begin * job_.index.chunk_bytes, run.view()));
    std::size_t at = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view raw = run.view().substr(at, job_.index.rawBytes(i));
      read_back_.remember(i, raw,
                          job_.index.format > 1 ? job_.index.chunks[i].quick : wire::quickSum(raw));
      at += raw.size();
    }
    count(at, 0);
    return read_back_.soFar();
  }

  /// One range of the pack, of whichever mirror; asks again with growing pauses until the deadline,
  /// since the network may be cut or the controller restarting.
  Async<Fetched> fetchRange(Connections* http, std::uint64_t offset, std::uint64_t length) {
    auto pause = job_.first_backoff;
    for (;;) {
      if (stopped_)
        co_return fail(ErrorCode::Conflict, "stopped, because another part of the image failed");
      const std::size_t mirror = mirrors_.pick();
      auto response = co_await ask(http, mirror, offset, length);
      auto fault = evaluate(response, mirror, offset, length);
      if (!fault) {
        report_.bytes_fetched += length;
        co_return Fetched{std::move(response->body), mirror};
      }
      const bool dropped = mirrors_.failed(mirror, fault->kind, fault->error.text());
      if (dropped) {
        ++report_.retries;
        notify(fmt::format("{}; it is not asked any more", fault->error.text()));
        continue;
      }
      if (!fault->error.canRetry()) co_return fail(std::move(fault->error));
      if (job_.clock.steady() + pause >= end_)
        co_return fail(ErrorCode::Timeout,
                       fmt::format("the image could not be fetched within {} s; last: {}",
                                   job_.deadline.count(), fault->error.str()));
      ++report_.retries;
      notify(
          fmt::format("{}; trying again in {:.1f} s", fault->error.text(), pause.count() / 1000.0));
      co_await job_.clock.sleep(pause);
      pause = std::min(pause * 2, job_.max_backoff);
    }
  }

  Async<io::HttpResponse> ask(Connections* http, std::size_t mirror, std::uint64_t offset,
                              std::uint64_t length) {
    CO_TRY(url, io::Url::parse(mirrors_.url(mirror)));
    auto& client = (*http)[mirror];
    if (!client) client = job_.make_http();
    io::HttpRequest request;
    request.url = url;
    request.headers["Range"] = fmt::format("bytes={}-{}", offset, offset + length - 1);
    request.timeout = mirrors_.usable() > 1 ? kRequestTimeoutBesideOthers : kRequestTimeout;
    request.max_body_bytes = length + kBodySlackBytes;
    const auto begun = job_.clock.steady();
    auto response = co_await client->send(std::move(request));
    if (response && response->status == 206 && response->body.size() == length)
      mirrors_.delivered(mirror, length,
                         std::chrono::duration<double>(job_.clock.steady() - begun).count());
    co_return response;
  }

  /// What is wrong with an answer; nothing, when it is the range. The whole file instead of a short
  /// range is accepted as it is.
  std::optional<Fault> evaluate(Result<io::HttpResponse>& response, std::size_t mirror,
                                std::uint64_t offset, std::uint64_t length) {
    using enum ImageMirrors::Fault;
    const std::string& url = mirrors_.url(mirror);
    if (!response) {
      const Error& error = response.error();
      // A connection that breaks inside a body is malformed for HTTP and still only a broken
      // connection.
      return Fault{Error(error).retryable(error.canRetry() || error.code() == ErrorCode::Corrupt),
                   error.canRetry() || error.code() == ErrorCode::Corrupt ? Silent : Corrupt};
    }
    const int status = response->status;
    if (status == 206 && response->body.size() == length) return std::nullopt;
    if (status == 200 && response->body.size() == job_.index.pack_bytes) {
      response->body = response->body.substr(offset, length);
      mirrors_.delivered(mirror, length, 1);
      return std::nullopt;
    }
    if (status == 200)
      return Fault{
          Error(ErrorCode::InvalidInput, url + ": the server does not answer range requests"),
          Corrupt};
    if (status == 206)
      return Fault{
          Error(ErrorCode::Unavailable, fmt::format("{}: {} bytes of the pack came instead of {}",
                                                    url, response->body.size(), length)),
          Silent};
    if (status >= 500 || status == 408 || status == 429)
      return Fault{Error(ErrorCode::Unavailable, fmt::format("{} answers {}", url, status)),
                   Silent};
    return Fault{Error(ErrorCode::NotFound,
                       fmt::format("{} answers {}: it does not have this image", url, status)),
                 Corrupt};
  }

  /// Image data in memory, for the report and the bound. Also called in the pool.
  class Held {
   public:
    Held(Writer& writer, std::uint64_t bytes) : writer_(writer), bytes_(bytes) {
      const std::lock_guard guard(writer_.mutex_);
      writer_.held_bytes_ += bytes_;
      writer_.report_.peak_buffer_bytes =
          std::max(writer_.report_.peak_buffer_bytes, writer_.held_bytes_);
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

  void notify(const std::string& text) {
    double fraction = 0;
    {
      const std::lock_guard guard(mutex_);
      fraction = static_cast<double>(report_.bytes_written + report_.bytes_skipped) /
                 static_cast<double>(job_.index.size_bytes);
    }
    job_.progress(fraction, text);
  }

  ChunkJob job_;
  ImageMirrors mirrors_;
  ReadBack read_back_;
  std::vector<char>
      right_;  ///< by chunk: the disk held it before; written by the readers, each its own
  std::chrono::steady_clock::time_point end_;
  std::size_t next_ = 0;
  bool stopped_ = false;
  std::optional<Error> first_error_;
  std::mutex mutex_;
  std::uint64_t held_bytes_ = 0;
  ChunkReport report_;
};

}  // namespace

std::uint64_t windowBytes(const wire::PackIndex& index) {
  const std::uint64_t writing =
      kLanes *
      (std::max<std::uint64_t>(kGroupBytes, index.chunk_bytes + (index.chunk_bytes >> 4) + 1024) +
       runBytes(index));
  return std::max(writing + kReadBackThreads * index.chunk_bytes,
                  readersFor(index) * index.chunk_bytes);
}

Async<ChunkReport> writeChunks(ChunkJob job) {
  Writer writer(std::move(job));
  co_return co_await writer.run();
}

Async<ChunkReport> writeAndVerify(ChunkJob job) {
  auto progress = job.progress;
  Writer writer(std::move(job));
  CO_TRY(report, co_await writer.run());
  progress(1, "reading the disk back");
  CO_TRY_OK(co_await writer.verify());
  co_return report;
}

}  // namespace muster::agent
