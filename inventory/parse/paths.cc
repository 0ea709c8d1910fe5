// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/paths.h"

#include "base/io/regular_file.h"
#include "inventory/schema/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace muster::inventory {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> allowedFolders() {
  std::vector<fs::path> out(std::begin(kAllowedFolders), std::end(kAllowedFolders));
  const char* variable = std::getenv(kAllowPathVariable);
  for (std::string_view rest = variable ? variable : ""; !rest.empty();) {
    const auto one = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one.starts_with('/'))
      out.emplace_back(one);  // a relative one would depend on where muster is started
  }
  return out;
}

/// Nothing when it cannot be said where the path leads: a loop of links.
std::optional<fs::path> resolved(const fs::path& path) {
  std::error_code failed;
  auto out = fs::weakly_canonical(path, failed);
  if (failed) return std::nullopt;
  return out;
}

bool isIn(const fs::path& folder, const fs::path& path) {
  const auto home = resolved(folder);
  if (!home) return false;
  const auto [in_home, in_path] =
      std::mismatch(home->begin(), home->end(), path.begin(), path.end());
  return in_home == home->end() ||
         (std::next(in_home) == home->end() && in_home->empty());  // "/a/" ends with an empty name
}

}  // namespace

bool mayName(const fs::path& folder, const fs::path& path) {
  const auto target = resolved(path);
  if (!target) return false;
  if (isIn(folder, *target)) return true;
  const auto allowed = allowedFolders();
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const auto& each) { return isIn(each, *target); });
}

std::optional<fs::path> namedPath(std::string_view written, const Value& where, Reader& reader) {
  auto path = reader.resolve(written);
  if (!resolved(path)) {
    reader.error(where,
                 fmt::format("{} leads nowhere: links that name each other", shorten(written)),
                 "name a regular file");
    return std::nullopt;
  }
  if (!mayName(reader.folder, path)) {
    const auto target = resolved(path);
    reader.error(
        where,
        fmt::format(
            "{} leaves the inventory's folder{}", shorten(written),
            target && *target != path ? fmt::format(": it leads to {}", target->string()) : ""),
        fmt::format("put it into the folder, or into one of {}; or say that it is right: "
                    "--allow-path {} ({})",
                    fmt::join(kAllowedFolders, ", "),
                    (target ? *target : path).parent_path().string(), kAllowPathVariable));
    return std::nullopt;
  }
  if (const auto kind = io::irregularKind(path); !kind.empty() && kind != "a folder") {
    reader.error(where, fmt::format("{} is {}", shorten(written), kind), "name a regular file");
    return std::nullopt;
  }
  return path;
}

}  // namespace muster::inventory
