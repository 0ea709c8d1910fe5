// SPDX-License-Identifier: Apache-2.0
// What the two sides of a backup must agree on: names of entries, and limits.
//
// The sealed content is a row of entries: 4 bytes length and the name, 8 bytes length and the
// content (big-endian); an empty name ends it. The first is `about`. docs/adr/0302
#pragma once

#include "base/result.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace muster::app::backup {

inline constexpr std::string_view kFormat = "muster-backup/1";
inline constexpr const char* kStoreEntry = "store";
inline constexpr const char* kKeysMade = "keys.made";  ///< which keys there must be (site_keys.h)
inline constexpr std::size_t kPieceBytes = 1 << 20;

/// What errno says of a file that could not be `what` ("read", "written", "put in place").
inline std::unexpected<Error> diskError(const std::filesystem::path& file, const char* what) {
  return fail(Error(ErrorCode::Unavailable,
                    fmt::format("{} cannot be {}: {}", file.string(), what, std::strerror(errno)))
                  .retryable(false));
}

}  // namespace muster::app::backup
