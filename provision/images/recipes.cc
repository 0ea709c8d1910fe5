// SPDX-License-Identifier: Apache-2.0
#include "provision/images/recipes.h"

#include "base/io/crypto.h"
#include "base/io/files.h"

#include <map>
#include <mutex>
#include <sstream>

namespace muster::provision {

namespace {

std::string digestOfRecipes(std::string_view kind) {
  io::Sha256 hash;
  for (const EmbeddedFile& file : recipeFiles()) {
    const auto slash = file.name.find('/');
    if (slash != std::string_view::npos && file.name.substr(0, slash) != kind) continue;
    hash.update(file.name.data(), file.name.size());
    hash.update("\0", 1);
    hash.update(file.content.data(), file.content.size());
    hash.update("\0", 1);
  }
  return hash.finishHex();
}

}  // namespace

std::string recipeDigest(std::string_view kind) {
  // They are part of the program, and their digest is asked for with every node of a plan.
  static std::mutex mutex;
  static std::map<std::string, std::string, std::less<>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(kind);
  if (found != known.end()) return found->second;
  return known.emplace(kind, digestOfRecipes(kind)).first->second;
}

std::vector<std::string> recipeLines(std::string_view name) {
  std::vector<std::string> lines;
  for (const EmbeddedFile& file : recipeFiles()) {
    if (file.name != name) continue;
    std::istringstream stream{std::string(file.content)};
    for (std::string line; std::getline(stream, line);)
      if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

Result<void> writeRecipes(const std::filesystem::path& folder) {
  for (const EmbeddedFile& file : recipeFiles()) {
    const auto path = folder / std::string(file.name);
    TRY_OK(io::makeDirs(path.parent_path()));
    TRY_OK(io::writeFileAtomic(path, file.content, file.content.starts_with("#!") ? 0755 : 0644));
  }
  return {};
}

}  // namespace muster::provision
