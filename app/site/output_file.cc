// SPDX-License-Identifier: Apache-2.0
#include "app/site/output_file.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
  std::error_code error;
  auto out = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path.lexically_normal() : out;
}

bool isInside(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

std::unexpected<Error> refused(const fs::path& file, std::string_view why) {
  return fail(ErrorCode::InvalidInput,
              fmt::format("{} {}; it was left as it is: name another file", file.string(), why));
}

}  // namespace

Result<void> writeOutputFile(const Options& options, const fs::path& file,
                             std::string_view content) {
  const auto at = resolved(file);
  if (isInside(at, resolved(options.state)))
    return refused(file, "is in the state folder, whose files are muster's own");
  if (at == resolved(options.inventory)) return refused(file, "is the inventory");
  std::error_code error;
  if (fs::is_regular_file(at, error) && !content.empty()) {
    char first = 0;
    if (std::ifstream(at, std::ios::binary).get(first) && first != content.front())
      return refused(file, "exists and is no earlier output of this command");
  }
  return io::writeNamedFile(file, content);
}

}  // namespace muster::app
