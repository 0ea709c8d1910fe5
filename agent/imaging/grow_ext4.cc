// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/grow_ext4.h"

#include "base/io/process.h"

#include <fmt/format.h>

namespace muster::agent {

namespace {

constexpr std::chrono::minutes kToolLimit{10};
constexpr int kMended =
    1;  ///< e2fsck's exit status: 0 sound, 1 mended, 2 mended but mounted, from 4 on not mended
constexpr std::size_t kQuotedBytes = 400;

}  // namespace

Result<void> growExt4(const std::filesystem::path& device) {
  io::Command check{.program = "e2fsck", .args = {"-f", "-p", device.string()}};
  check.timeout = kToolLimit;
  TRY(checked, io::runBlocking(check));
  if (checked.code > kMended) {
    const std::string words = checked.out + checked.err;
    return fail(
        ErrorCode::InvalidInput,
        fmt::format(
            "the image's file system has faults that e2fsck does not mend by itself (exit status "
            "{}): {}; run e2fsck -f on the image where it comes from, and import it again",
            checked.code, words.substr(0, kQuotedBytes)));
  }
  io::Command grow{.program = "resize2fs", .args = {device.string()}};
  grow.timeout = kToolLimit;
  TRY_OK(io::runChecked(grow));
  return {};
}

}  // namespace muster::agent
