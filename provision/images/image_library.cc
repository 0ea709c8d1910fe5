// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_library.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_store_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kDigestChars = 64, kLeastPrefixChars = 4, kShownChars = 12;

std::string shortName(const KeptImage& image) {
  return fmt::format("{}@{}", image.name, image.digest.substr(0, kShownChars));
}

std::string listed(const std::vector<KeptImage>& images) {
  if (images.empty()) return "no image is kept here";
  std::vector<std::string> names;
  for (const auto& image : images) names.push_back(shortName(image));
  return fmt::format("there are: {}", fmt::join(names, ", "));
}

std::vector<std::string> signersOf(const fs::path& entry) {
  constexpr std::string_view kPrefix = "index-", kSuffix = ".json";
  std::vector<std::string> signers;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(entry, error)) {
    const std::string name = file.path().filename();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix))
      signers.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
  }
  std::sort(signers.begin(), signers.end());
  return signers;
}

/// By key: the names of declared images.
std::map<std::string, std::string> declaredKeys(const inventory::Cluster& cluster) {
  std::map<std::string, std::string> keys;
  for (const auto& [name, image] : cluster.images) keys[imageKey(image)] = name;
  return keys;
}

bool fits(const KeptImage& image, std::string_view words) {
  const auto at = words.find('@');
  const std::string_view digest = at == std::string_view::npos ? words : words.substr(at + 1);
  if (at != std::string_view::npos && image.name != words.substr(0, at)) return false;
  return digest.size() >= kLeastPrefixChars && std::string_view(image.digest).starts_with(digest);
}

}  // namespace

std::vector<KeptImage> keptImages(const fs::path& cache, const inventory::Cluster& cluster) {
  const auto declared = declaredKeys(cluster);
  std::vector<KeptImage> kept;
  for (const fs::path& entry : listEntries(cache)) {
    KeptImage image;
    image.folder = entry;
    image.key = entry.filename();
    image.signers = signersOf(entry);
    if (const auto index = contentOf(entry)) {
      image.name = index->name;
      image.digest = wire::digestOf(*index);
      image.size_bytes = index->size_bytes;
      image.pack_bytes = index->pack_bytes;
      image.predecessor = index->predecessor;
    } else {
      image.fault = index.error().text();
    }
    if (const auto found = declared.find(image.key); found != declared.end()) {
      image.declared = true;
      if (image.name.empty()) image.name = found->second;
      for (const auto& [name, profile] : cluster.profiles)
        if (profile.image == found->second) image.profiles.push_back(name);
    }
    kept.push_back(std::move(image));
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.key) < std::tie(b.name, b.key);
  });
  return kept;
}

Result<KeptImage> findKept(const std::vector<KeptImage>& kept, std::string_view words) {
  std::vector<KeptImage> found;
  for (const auto& image : kept)
    if (image.declared && image.name == words) return image;
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(found),
               [words](const auto& image) { return image.name == words || fits(image, words); });
  if (found.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("no image \"{}\" is kept here; {}", words, listed(kept)));
  const auto is_same = [&found](const auto& image) {
    return image.fault.empty() && image.digest == found.front().digest;
  };
  if (std::ranges::all_of(found, is_same)) return found.front();  // kept under several keys
  if (found.size() > 1)
    return fail(ErrorCode::Conflict,
                fmt::format("\"{}\" means several images; {}", words, listed(found)));
  return found.front();
}

void addNeeds(std::string_view text, const std::string& why, Needs& needs) {
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    const std::string digest(text.substr(at + 1, kDigestChars));
    if (isDigest(digest)) needs.emplace(digest, why);
  }
}

Clearing planClearing(const std::vector<KeptImage>& kept, const Needs& needs) {
  Clearing plan;
  for (const auto& image : kept) {
    if (image.declared) {
      plan.keep.push_back({image, "the inventory declares it"});
    } else if (const auto need = needs.find(image.digest); need != needs.end()) {
      plan.keep.push_back({image, need->second});
    } else {
      plan.remove.push_back(image);
      plan.bytes += image.pack_bytes;
    }
  }
  return plan;
}

std::vector<fs::path> leftovers(const fs::path& cache) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const char* kind : {"images", "ramos"})
    for (const auto& folder : fs::directory_iterator(cache / kind, error)) {
      if (folder.path().extension() != ".partial") continue;
      if (BuildLock::isFree(lockOfPartial(folder.path()))) found.push_back(folder.path());
    }
  for (const auto& folder : fs::directory_iterator(cache, error)) {
    const auto name = folder.path().filename().string();
    if (!name.starts_with("diff-") || !folder.is_directory(error)) continue;
    fs::path lock = folder.path();
    if (BuildLock::isFree(lock.replace_extension(".lock"))) found.push_back(folder.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<void> clear(const Clearing& plan) {
  const auto remove = [](const fs::path& folder, fs::path lock_file) -> Result<void> {
    auto lock = BuildLock::take(lock_file, [] {});
    if (!lock) return fail(std::move(lock).error());
    return removeTree(folder);
  };
  for (const auto& set : plan.ramos)
    if (set.why.empty()) TRY_OK(removeRamOs(set));
  for (const auto& image : plan.remove)
    TRY_OK(remove(image.folder, image.folder.string() + ".lock"));
  for (const fs::path& folder : plan.leftovers) TRY_OK(remove(folder, lockOfPartial(folder)));
  return {};
}

}  // namespace muster::provision
