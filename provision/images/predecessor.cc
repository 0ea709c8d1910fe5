// SPDX-License-Identifier: Apache-2.0
#include "provision/images/predecessor.h"

#include "provision/images/ext4_succession.h"
#include "provision/images/image_entry.h"
#include "provision/images/pack_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownChars = 12, kLeastPrefixChars = 4;

bool isRootFs(const wire::PackIndex& index) {
  return index.kind == wire::PackKind::RootFs && index.root_fs == "ext4";
}

/// All that could be one, but `entry` itself.
std::vector<Predecessor> candidates(const fs::path& cache, const fs::path& entry) {
  std::vector<Predecessor> found;
  for (const fs::path& kept : listEntries(cache)) {
    if (kept == entry) continue;
    if (auto index = contentOf(kept); index && isRootFs(*index)) {
      auto digest = wire::digestOf(*index);
      found.push_back({kept, std::move(digest), std::move(*index)});
    }
  }
  return found;
}

/// Of several entries with one digest the first: their content is the same.
Result<std::optional<Predecessor>> byDigest(std::vector<Predecessor> all, std::string_view wanted) {
  std::optional<Predecessor> found;
  std::vector<std::string> names;
  for (auto& one : all) {
    if (!one.digest.starts_with(wanted) || (found && found->digest == one.digest)) continue;
    names.push_back(fmt::format("{}@{}", one.index.name, one.digest.substr(0, kShownChars)));
    if (!found) found = std::move(one);
  }
  if (names.size() > 1)
    return fail(ErrorCode::Conflict,
                fmt::format("several images begin with {}: {}", wanted, fmt::join(names, ", ")));
  return found;
}

}  // namespace

Result<std::optional<Predecessor>> choosePredecessor(const fs::path& cache, const fs::path& entry,
                                                     const std::string& name,
                                                     std::string_view wanted) {
  if (wanted == kNoPredecessor) return std::nullopt;
  auto all = candidates(cache, entry);
  if (!wanted.empty()) {
    if (wanted.size() < kLeastPrefixChars)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a digest begins with {} characters at least", kLeastPrefixChars));
    TRY(found, byDigest(std::move(all), wanted));
    if (!found)
      return fail(ErrorCode::NotFound,
                  fmt::format("no image with a root file system whose digest begins with {} is "
                              "kept here; `muster image list` shows them",
                              wanted));
    return std::optional(std::move(found));
  }
  if (const auto was = contentOf(entry)) {
    if (was->predecessor.empty()) return std::nullopt;
    TRY(found, byDigest(all, was->predecessor));
    if (found) return std::optional(std::move(found));
  }
  std::optional<Predecessor> newest;
  std::int64_t newest_at = 0;
  for (auto& one : all) {
    if (one.index.name != name) continue;
    const auto at = madeAt(one.entry);
    if (newest && (at < newest_at || (at == newest_at && one.digest < newest->digest))) continue;
    newest_at = at;
    newest = std::move(one);
  }
  return newest;
}

bool layOutOverPredecessor(const Predecessor& predecessor, const fs::path& raw,
                           const fs::path& work, const std::string& name, const Say& say) {
  const std::string before =
      fmt::format("{}@{}", predecessor.index.name, predecessor.digest.substr(0, kShownChars));
  const fs::path image = work / "over.ext4";
  std::error_code error;
  const auto done = [&]() -> Result<Succession> {
    TRY_OK(unpack(predecessor.index, predecessor.entry / kPackFile, image));
    return layOutOver(image, raw, wire::kPackChunkBytes);
  }();
  if (!done) {
    fs::remove(image, error);
    say(fmt::format("{}: laid out anew, not over {}: {}; nodes will fetch nearly all of it", name,
                    before, done.error().str()));
    return false;
  }
  fs::rename(image, raw, error);
  if (error) {
    say(fmt::format("{}: laid out anew: cannot rename {}: {}", name, image.string(),
                    error.message()));
    return false;
  }
  say(fmt::format("{}: laid out over {}: {} of {} chunks differ", name, before,
                  done->changed_chunks, done->chunks));
  return true;
}

void recordPredecessor(const Predecessor& predecessor, wire::PackIndex& index) {
  const bool same = index.name == predecessor.index.name &&
                    index.size_bytes == predecessor.index.size_bytes &&
                    index.chunks == predecessor.index.chunks;
  index.predecessor = same ? predecessor.index.predecessor : predecessor.digest;
}

}  // namespace muster::provision
