// SPDX-License-Identifier: Apache-2.0
// A pack in memory behind the HttpClient seam, with faults by script; and a target in memory.
#pragma once

#include "agent/imaging/block_target.h"
#include "base/io/files.h"
#include "base/io/http.h"
#include "provision/images/pack_writer.h"
#include "tests/run_async.h"
#include "wire/pack_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>
#include <random>
#include <set>

namespace muster::test {

/// Noise, so that it does not compress, with every third chunk empty and a short last one.
struct SamplePack {
  std::string raw, pack;
  wire::PackIndex index;

  explicit SamplePack(std::size_t chunks = 12,
                      const std::function<void(std::string& raw)>& change = {}) {
    std::mt19937 random(7);
    for (std::size_t i = 0; i < chunks; ++i) {
      std::string chunk(i + 1 == chunks ? 8192 : wire::kPackChunkBytes, '\0');
      if (i % 3 != 1)
        for (std::size_t at = 0; at < chunk.size(); at += 4) {
          const auto word = random();
          std::memcpy(chunk.data() + at, &word, 4);
        }
      raw += chunk;
    }
    if (change) change(raw);
    TempFolder folder;
    EXPECT_TRUE(io::writeFileAtomic(folder / "raw", raw));
    auto made = provision::writePack(folder / "raw", folder / "pack", "sample", 2);
    EXPECT_TRUE(made);
    index = *made;
    pack = *io::readFile(folder / "pack");
  }
};

/// A table of one Linux partition, as disks without names have it.
inline void putMbr(std::string& raw) {
  const auto number = [&raw](std::size_t at, std::uint32_t value) {
    for (std::size_t byte = 0; byte < 4; ++byte)
      raw[at + byte] = static_cast<char>(value >> (8 * byte));
  };
  std::fill_n(raw.begin(), 512, '\0');
  number(440, 0x1b2c3d4e);
  number(446, 0);
  raw[446 + 4] = '\x83';
  number(446 + 8, 2048);
  number(446 + 12, static_cast<std::uint32_t>(raw.size() / 512 - 2048));
  raw[510] = '\x55';
  raw[511] = '\xaa';
}

/// One for all tests of a program: it takes a moment to make.
inline const SamplePack& sample() {
  static const SamplePack pack;
  return pack;
}

/// What the server does with the next requests, one entry each; afterwards it is well.
using Fault = std::function<Result<io::HttpResponse>(Result<io::HttpResponse>)>;

struct PackServer {
  std::string pack;
  std::deque<Fault> faults;
  bool ranges = true;
  int requests = 0;
  std::uint64_t largest_answer = 0;

  Result<io::HttpResponse> answer(const io::HttpRequest& request) {
    ++requests;
    io::HttpResponse response;
    unsigned long first = 0, last = 0;
    const auto range = request.headers.find("Range");
    if (ranges && range != request.headers.end() &&
        std::sscanf(range->second.c_str(), "bytes=%lu-%lu", &first, &last) == 2 &&
        last < pack.size()) {
      response.status = 206;
      response.body = pack.substr(first, last - first + 1);
    } else {
      response.status = 200;
      response.body = pack;
    }
    largest_answer = std::max<std::uint64_t>(largest_answer, response.body.size());
    if (faults.empty()) return response;
    auto fault = std::move(faults.front());
    faults.pop_front();
    return fault(std::move(response));
  }
};

class PackClient final : public io::HttpClient {
 public:
  explicit PackClient(PackServer& server) : server_(server) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override {
    co_return server_.answer(request);
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return fail(ErrorCode::Internal, "the writer asks for ranges");
  }
  std::string peerFingerprint() const override { return {}; }

 private:
  PackServer& server_;
};

inline Task<io::ServerResponse> serveFile(std::filesystem::path file) {
  co_return io::ServerResponse::file({file, "application/octet-stream"});
}

/// Starts full of old data, as a used disk does.
class MemoryTarget final : public agent::BlockTarget {
 public:
  explicit MemoryTarget(std::size_t bytes) : data(bytes, 'o') {}
  std::uint64_t sizeBytes() const override { return data.size(); }
  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    const std::lock_guard guard(mutex_);
    const int number = writes++;
    if ((fail_at && offset >= *fail_at) || (fail_from && number >= *fail_from))
      return fail(ErrorCode::Internal, "cannot write: Input/output error");
    data.replace(offset, bytes.size(), bytes);
    unreadable.erase(unreadable.lower_bound(offset), unreadable.lower_bound(offset + bytes.size()));
    return {};
  }
  Result<void> zero(std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard guard(mutex_);
    std::fill_n(data.begin() + static_cast<std::ptrdiff_t>(offset), length, '\0');
    unreadable.erase(unreadable.lower_bound(offset), unreadable.lower_bound(offset + length));
    return {};
  }
  Result<void> read(std::uint64_t offset, std::span<char> out) override {
    const std::lock_guard guard(mutex_);
    if (const auto bad = unreadable.lower_bound(offset);
        bad != unreadable.end() && *bad < offset + out.size())
      return fail(ErrorCode::Internal, "cannot read: Input/output error");
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  Result<void> flush() override {
    if (on_flush) on_flush(data);
    return {};
  }

  std::string data;
  std::atomic<int> writes = 0;
  std::optional<std::uint64_t> fail_at;
  std::optional<int> fail_from;        ///< the writes from this one on
  std::set<std::uint64_t> unreadable;  ///< bytes; until something is written there
  std::function<void(std::string&)> on_flush;

 private:
  std::mutex mutex_;
};

}  // namespace muster::test
