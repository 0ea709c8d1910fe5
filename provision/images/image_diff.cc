// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_diff.h"

#include "provision/images/ext_files.h"
#include "provision/images/image_entry.h"
#include "provision/images/pack_reader.h"

#include <fmt/format.h>

#include <sstream>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxStatusBytes = 64u << 20;
constexpr std::string_view kStatusFile = "var/lib/dpkg/status";
constexpr std::string_view kModules[] = {"usr/lib/modules/", "lib/modules/"};

struct Inside {
  ExtFiles files;
  std::map<std::string, FileFact> list;
};

Result<Inside> lookInside(const wire::PackIndex& index, const fs::path& entry,
                          const fs::path& raw) {
  TRY_OK(unpack(index, entry / kPackFile, raw));
  auto files = ExtFiles::open(raw);
  if (!files) return fail(std::move(files).error());
  TRY(list, files->list());
  return Inside{std::move(*files), std::move(list)};
}

std::vector<std::string> kernelsOf(const Inside& inside) {
  std::vector<std::string> kernels;
  for (const auto& [path, fact] : inside.list)
    for (const auto prefix : kModules)
      if (path.starts_with(prefix) && path.find('/', prefix.size()) == std::string::npos)
        kernels.push_back(path.substr(prefix.size()));
  return kernels;
}

Result<std::map<std::string, std::string>> packagesOf(const Inside& inside) {
  const auto status = inside.list.find(std::string(kStatusFile));
  if (status == inside.list.end()) return std::map<std::string, std::string>();
  TRY(text, inside.files.read(status->second.inode, kMaxStatusBytes));
  return installedPackages(text);
}

bool hasContent(const FileFact& fact) {
  return (fact.mode & 0170000) == 0100000 || (fact.mode & 0170000) == 0120000;
}

Result<void> compareFiles(const Inside& a, const Inside& b, ImageDiff& diff) {
  for (const auto& [path, fact] : a.list)
    if (!b.list.contains(path)) diff.removed.push_back(path);
  for (const auto& [path, fact] : b.list) {
    const auto before = a.list.find(path);
    if (before == a.list.end()) {
      diff.added.push_back(path);
    } else if (!(before->second == fact)) {
      diff.changed.push_back(path);
    } else if (hasContent(fact)) {
      TRY(old_digest, a.files.digest(before->second.inode));
      TRY(new_digest, b.files.digest(fact.inode));
      if (old_digest != new_digest) diff.changed.push_back(path);
    }
  }
  return {};
}

Result<void> comparePackages(const Inside& a, const Inside& b, ImageDiff& diff) {
  TRY(before, packagesOf(a));
  TRY(after, packagesOf(b));
  for (const auto& [name, version] : before)
    if (const auto now = after.find(name); now == after.end() || now->second != version)
      diff.packages.push_back({name, version, now == after.end() ? "" : now->second});
  for (const auto& [name, version] : after)
    if (!before.contains(name)) diff.packages.push_back({name, "", version});
  return {};
}

}  // namespace

ImageDiff diffChunks(const wire::PackIndex& a, const wire::PackIndex& b) {
  ImageDiff diff;
  diff.chunks = b.chunks.size();
  for (std::size_t i = 0; i < b.chunks.size(); ++i) {
    const bool same = a.chunk_bytes == b.chunk_bytes && i < a.chunks.size() &&
                      a.chunks[i].sha256 == b.chunks[i].sha256;
    if (same) continue;
    ++diff.changed_chunks;
    diff.fetch_bytes += b.chunks[i].length;
  }
  return diff;
}

Result<ImageDiff> diffImages(const fs::path& a, const fs::path& b, const fs::path& work) {
  TRY(index_a, contentOf(a));
  TRY(index_b, contentOf(b));
  ImageDiff diff = diffChunks(index_a, index_b);
  auto inside_a = lookInside(index_a, a, work / "a");
  if (!inside_a && inside_a.error().code() == ErrorCode::InvalidInput) return diff;
  if (!inside_a) return fail(std::move(inside_a).error().within(index_a.name));
  auto inside_b = lookInside(index_b, b, work / "b");
  if (!inside_b && inside_b.error().code() == ErrorCode::InvalidInput) return diff;
  if (!inside_b) return fail(std::move(inside_b).error().within(index_b.name));
  diff.looked_inside = true;
  TRY_OK(compareFiles(*inside_a, *inside_b, diff));
  TRY_OK(comparePackages(*inside_a, *inside_b, diff));
  diff.kernels_from = kernelsOf(*inside_a);
  diff.kernels_to = kernelsOf(*inside_b);
  return diff;
}

std::map<std::string, std::string> installedPackages(std::string_view dpkg_status) {
  std::map<std::string, std::string> packages;
  std::istringstream lines{std::string(dpkg_status)};
  std::string name, version;
  bool installed = false;
  const auto finish = [&] {
    if (installed && !name.empty()) packages[name] = version;
    name.clear();
    version.clear();
    installed = false;
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) finish();
    if (line.starts_with("Package: ")) name = line.substr(9);
    if (line.starts_with("Version: ")) version = line.substr(9);
    if (line.starts_with("Status: ")) installed = line.ends_with(" installed");
  }
  finish();
  return packages;
}

}  // namespace muster::provision
