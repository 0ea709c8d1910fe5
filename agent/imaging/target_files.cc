// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/target_files.h"

#include "base/embedded.h"
#include "base/io/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace muster::agent {

namespace fs = std::filesystem;

std::span<const EmbeddedFile> writerRecipes();

namespace {
constexpr std::size_t kMaxConfigBytes = 1u << 20;
}

Result<void> put(const fs::path& root, const fs::path& name, std::string_view content,
                 unsigned mode) {
  TRY_OK(io::makeDirs((root / name).parent_path()));
  return io::writeFileAtomic(root / name, content, mode);
}

Result<void> putLines(const fs::path& root, const fs::path& name,
                      const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  const std::string before = io::readFile(root / name, kMaxConfigBytes).value_or("");
  return put(root, name,
             fmt::format("{}{}{}\n", before, before.empty() || before.ends_with('\n') ? "" : "\n",
                         fmt::join(lines, "\n")));
}

bool has(const fs::path& root, std::initializer_list<const char*> places) {
  std::error_code error;
  return std::any_of(places.begin(), places.end(), [&](const char* place) {
    return fs::exists(fs::symlink_status(root / place, error));
  });
}

Result<void> needPackage(bool there, const char* package, const char* for_what) {
  if (there) return {};
  return fail(
      ErrorCode::InvalidInput,
      fmt::format("the image has no {}, which {} need; add the package to it", package, for_what));
}

std::string recipe(std::string_view name) {
  for (const EmbeddedFile& file : writerRecipes())
    if (file.name == name) return std::string(file.content);
  return {};
}

}  // namespace muster::agent
