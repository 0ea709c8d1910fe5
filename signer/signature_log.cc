// SPDX-License-Identifier: Apache-2.0
#include "signer/signature_log.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> diskError(const fs::path& file, const char* what) {
  return fail(ErrorCode::Unavailable, fmt::format("nothing is signed, because {} cannot be {}: {}",
                                                  file.string(), what, std::strerror(errno)));
}

fs::path numbered(const fs::path& file, int number) {
  return number == 0 ? file : fs::path(fmt::format("{}.{}", file.string(), number));
}

}  // namespace

Result<void> SignatureLog::open() {
  fd_ = io::Fd(::open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_.valid()) return diskError(file_, "opened");
  // A power cut may have left a part of a line.
  const auto size = ::lseek(fd_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(fd_.get(), &last, 1, size - 1) == 1 && last != '\n' &&
      ::write(fd_.get(), "\n", 1) != 1)
    return diskError(file_, "written");
  return {};
}

void SignatureLog::moveAside() {
  fd_ = io::Fd();
  std::error_code ignored;
  for (int number = limits_.files - 1; number > 0; --number)
    fs::rename(numbered(file_, number - 1), numbered(file_, number), ignored);
}

Result<void> SignatureLog::add(WallTime at, std::string_view words) {
  struct stat named{}, open_one{};
  const bool is_open = fd_.valid() && ::fstat(fd_.get(), &open_one) == 0 &&
                       ::stat(file_.c_str(), &named) == 0 && named.st_ino == open_one.st_ino &&
                       named.st_dev == open_one.st_dev;
  if (is_open && static_cast<std::uint64_t>(open_one.st_size) >= limits_.file_bytes) moveAside();
  if (!is_open || !fd_.valid()) TRY_OK(open());
  const auto before = ::lseek(fd_.get(), 0, SEEK_END);
  const auto line = fmt::format("{} {}\n", muster::toString(at), words);
  const auto written = ::write(fd_.get(), line.data(), line.size());
  if (before >= 0 && written == static_cast<ssize_t>(line.size()) && ::fdatasync(fd_.get()) == 0)
    return {};
  if (written >= 0 && written != static_cast<ssize_t>(line.size())) errno = ENOSPC;
  const int why = errno;
  if (before >= 0) (void)!::ftruncate(fd_.get(), before);
  errno = why;
  return diskError(file_, "written");
}

}  // namespace muster::signer
