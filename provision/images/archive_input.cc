// SPDX-License-Identifier: Apache-2.0
#include "provision/images/archive_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace muster::provision {

namespace {

constexpr std::size_t kInputBytes = 1u << 20;
constexpr int kGzipMembers =
    15 + 16;  ///< zlib.h: 16 more reads gzip's header, and checks what stands at its end
constexpr std::string_view kGzipMagic = "\x1f\x8b";

std::string wordsOf(archive* handle) {
  const char* text = archive_error_string(handle);
  return text != nullptr ? text : "unknown fault";
}

/// One member of gzip behind the other (RFC 1952), as gzip(1) takes them; zeros may follow.
class Gunzip {
 public:
  Gunzip() { usable_ = ::inflateInit2(&stream_, kGzipMembers) == Z_OK; }
  ~Gunzip() { ::inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// The next unpacked bytes; empty: the end. Errors: Corrupt
  Result<std::string_view> next(int fd) {
    if (!usable_) return fail(ErrorCode::Unavailable, "no memory to unpack gzip");
    out_.resize(kInputBytes);
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    while (stream_.avail_out == out_.size()) {
      TRY(more, fill(fd));
      if (!more) break;
      if (!begun_ && !begin()) continue;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END)
        begun_ = false;
      else if (code != Z_OK && code != Z_BUF_ERROR)
        return fail(ErrorCode::Corrupt,
                    fmt::format("gzip: {}", stream_.msg != nullptr ? stream_.msg : "damaged"));
    }
    return std::string_view(out_).substr(0, out_.size() - stream_.avail_out);
  }

 private:
  Result<bool> fill(int fd) {
    if (stream_.avail_in > 0) return true;
    in_.resize(kInputBytes);
    const ssize_t n = ::read(fd, in_.data(), in_.size());
    if (n < 0) return fail(ErrorCode::Unavailable, std::strerror(errno));
    if (n == 0 && begun_) return fail(ErrorCode::Corrupt, "truncated gzip input");
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
    stream_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }
  /// Between two members; false: there were zeros, and no more.
  bool begin() {
    if (any_)
      for (; stream_.avail_in > 0 && *stream_.next_in == 0; ++stream_.next_in) --stream_.avail_in;
    if (stream_.avail_in == 0) return false;
    ::inflateReset(&stream_);
    any_ = begun_ = true;
    return true;
  }

  z_stream stream_{};
  bool usable_ = false, begun_ = false, any_ = false;
  std::string in_, out_;
};

class FileInput final : public ArchiveInput {
 public:
  explicit FileInput(io::Fd fd) : fd_(std::move(fd)) {}
  ~FileInput() override {
    if (inner_ != nullptr) archive_read_free(inner_);
  }

  int feedStream(archive* handle) override {
    char head[2] = {};
    if (::pread(fd_.get(), head, sizeof head, 0) == sizeof head &&
        std::string_view(head, sizeof head) == kGzipMagic)
      gunzip_.emplace();
    supportPackings(handle);
    archive_read_support_format_raw(handle);
    return archive_read_open(handle, this, nullptr, &FileInput::readFile, nullptr);
  }

  int feedTar(archive* handle) override {
    inner_ = archive_read_new();
    archive_entry* entry = nullptr;
    // Of an empty file there is no stream: the tar's reader says so.
    inner_end_ = feedStream(inner_);
    if (inner_end_ >= ARCHIVE_WARN) inner_end_ = archive_read_next_header(inner_, &entry);
    if (inner_end_ < ARCHIVE_WARN) {
      archive_set_error(handle, archive_errno(inner_), "%s", wordsOf(inner_).c_str());
      return ARCHIVE_FATAL;
    }
    archive_read_support_format_tar(handle);
    return archive_read_open(handle, this, nullptr, &FileInput::readTar, nullptr);
  }

  const TarScan& scan() const override { return scan_; }

  Result<void> finish() override {
    for (const void* block = nullptr; !scan_.problem() && !scan_.lost();) {
      const auto n = readTar(nullptr, this, &block);
      if (n == 0) break;
      if (n < 0)
        return fail(ErrorCode::Corrupt,
                    fmt::format("it is damaged behind its last member: {}", wordsOf(inner_)));
    }
    if (const auto& problem = scan_.problem()) return fail(*problem);
    return {};
  }

 private:
  static la_ssize_t readFile(archive* handle, void* self, const void** buffer) {
    auto& input = *static_cast<FileInput*>(self);
    if (!input.gunzip_) {
      input.piece_.resize(kInputBytes);
      const ssize_t n = ::read(input.fd_.get(), input.piece_.data(), input.piece_.size());
      if (n < 0) archive_set_error(handle, errno, "%s", std::strerror(errno));
      *buffer = input.piece_.data();
      return n;
    }
    const auto piece = input.gunzip_->next(input.fd_.get());
    if (!piece) {
      archive_set_error(handle, EIO, "%s", piece.error().text().c_str());
      return -1;
    }
    *buffer = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }

  /// `handle`: nullptr where nobody is told.
  static la_ssize_t readTar(archive* handle, void* self, const void** buffer) {
    auto& input = *static_cast<FileInput*>(self);
    if (input.inner_end_ == ARCHIVE_EOF) return 0;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while (size == 0) {
      const int got = archive_read_data_block(input.inner_, buffer, &size, &offset);
      if (got == ARCHIVE_EOF) return 0;
      if (got < ARCHIVE_WARN) {
        if (handle != nullptr)
          archive_set_error(handle, archive_errno(input.inner_), "%s",
                            wordsOf(input.inner_).c_str());
        return -1;
      }
    }
    input.scan_.feed({static_cast<const char*>(*buffer), size});
    return static_cast<la_ssize_t>(size);
  }

  io::Fd fd_;
  std::optional<Gunzip> gunzip_;
  std::string piece_;
  archive* inner_ = nullptr;
  int inner_end_ = ARCHIVE_OK;
  TarScan scan_;
};

}  // namespace

void supportPackings(archive* handle) {
  archive_read_support_filter_gzip(handle);
  archive_read_support_filter_xz(handle);
  archive_read_support_filter_zstd(handle);
  archive_read_support_filter_bzip2(handle);
}

Result<std::unique_ptr<ArchiveInput>> ArchiveInput::open(const std::filesystem::path& file) {
  std::error_code missing;
  if (const auto status = std::filesystem::status(file, missing);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is not a regular file",
                            file.string()));  // a FIFO would be waited on for ever
  io::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return fail(
        std::filesystem::exists(file, missing) ? ErrorCode::InvalidInput : ErrorCode::NotFound,
        fmt::format("{} cannot be read: {}", file.string(), std::strerror(errno)));
  return std::unique_ptr<ArchiveInput>(new FileInput(std::move(fd)));
}

}  // namespace muster::provision
