// SPDX-License-Identifier: Apache-2.0
#include "provision/images/grub_tree.h"

#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::provision {

namespace {

constexpr std::chrono::seconds kReadLimit{60};

class GrubTree final : public FileTree {
 public:
  GrubTree(std::filesystem::path partition, std::filesystem::path work)
      : partition_(std::move(partition)), work_(std::move(work)) {}

  std::optional<Entry> at(const std::string& path) const override {
    if (path.empty()) return Entry{Kind::Folder, 0, true};
    const auto slash = path.rfind('/');
    const auto name = slash == std::string::npos ? path : path.substr(slash + 1);
    const auto& names = listed(slash == std::string::npos ? "" : path.substr(0, slash));
    // FAT does not tell large letters from small ones; the others have no two such names here.
    const auto same = [](const std::string& a, const std::string& b) {
      return std::equal(
          a.begin(), a.end(), b.begin(), b.end(),
          [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
    };
    for (const auto& each : names) {
      if (same(each, name)) return Entry{Kind::File, 1, true};
      if (same(each, name + "/")) return Entry{Kind::Folder, 0, true};
    }
    return std::nullopt;
  }
  Result<std::string> read(const std::string& path, std::size_t max_bytes) const override {
    const auto copy = work_ / "file-read-by-grub";
    std::error_code ignored;
    std::filesystem::remove(copy, ignored);
    io::Command command{.program = "grub-fstest",
                        .args = {partition_.string(), "cp", "(loop0)/" + path, copy.string()}};
    command.timeout = kReadLimit;
    auto done = io::runChecked(command);
    if (!done)
      return fail(
          Error(ErrorCode::Corrupt, std::move(done).error().text()).within("reading /" + path));
    auto content = io::readFile(copy, max_bytes);
    std::filesystem::remove(copy, ignored);
    return content;
  }
  std::vector<std::string> list(const std::string& folder) const override {
    auto names = listed(folder);
    for (auto& name : names)
      if (name.ends_with('/')) name.pop_back();
    return names;
  }
  Result<void> open() const {
    io::Command command{.program = "grub-fstest", .args = {partition_.string(), "ls", "(loop0)/"}};
    command.timeout = kReadLimit;
    auto done = io::runChecked(command);
    if (!done) return fail(ErrorCode::InvalidInput, std::move(done).error().text());
    if (done->find_first_not_of(" \n") == std::string::npos)
      return fail(ErrorCode::InvalidInput, "it is empty, or GRUB does not know it");
    return {};
  }

 private:
  /// As GRUB prints them: a folder's name ends in "/".
  const std::vector<std::string>& listed(const std::string& folder) const {
    if (const auto known = folders_.find(folder); known != folders_.end()) return known->second;
    auto& names = folders_[folder];
    io::Command command{.program = "grub-fstest",
                        .args = {partition_.string(), "ls",
                                 folder.empty() ? "(loop0)/" : "(loop0)/" + folder + "/"}};
    command.timeout = kReadLimit;
    const auto text = io::runChecked(command).value_or("");
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find_first_of(" \n", at), text.size());
      if (auto name = text.substr(at, end - at); !name.empty() && name != "./" && name != "../")
        names.push_back(std::move(name));
      at = end + 1;
    }
    return names;
  }

  std::filesystem::path partition_, work_;
  mutable std::map<std::string, std::vector<std::string>> folders_;
};

}  // namespace

Result<std::unique_ptr<FileTree>> openGrubTree(const std::filesystem::path& partition,
                                               const std::filesystem::path& work) {
  auto tree = std::make_unique<GrubTree>(partition, work);
  TRY_OK(tree->open());
  return tree;
}

}  // namespace muster::provision
