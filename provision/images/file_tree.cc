// SPDX-License-Identifier: Apache-2.0
#include "provision/images/file_tree.h"

#include "base/io/files.h"
#include "provision/images/ext_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxLinks = 40;  ///< as the kernel: a longer chain is a circle
constexpr std::size_t kMaxLinkBytes = 4096;
constexpr unsigned kPermissions = 07777;

std::deque<std::string> partsOf(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    if (const auto part = path.substr(0, slash); !part.empty() && part != ".")
      parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string path;
  for (const auto& part : parts) path += (path.empty() ? "" : "/") + part;
  return path;
}

class FolderTree final : public FileTree {
 public:
  explicit FolderTree(fs::path root) : root_(std::move(root)) {}

  std::optional<Entry> at(const std::string& path) const override {
    struct stat info{};
    if (::lstat((root_ / path).c_str(), &info) != 0) return std::nullopt;
    const auto kind = S_ISREG(info.st_mode)   ? Kind::File
                      : S_ISDIR(info.st_mode) ? Kind::Folder
                      : S_ISLNK(info.st_mode) ? Kind::Link
                                              : Kind::Other;
    return Entry{kind, static_cast<std::uint64_t>(info.st_size), (info.st_mode & 0111) != 0,
                 info.st_mode & kPermissions};
  }
  Result<std::string> read(const std::string& path, std::size_t max_bytes) const override {
    const auto entry = at(path);
    if (!entry || (entry->kind != Kind::File && entry->kind != Kind::Link))
      return fail(ErrorCode::NotFound, fmt::format("/{} is no file", path));
    if (entry->kind == Kind::File) return io::readFile(root_ / path, max_bytes);
    std::error_code error;
    const auto target = fs::read_symlink(root_ / path, error);
    if (error) return fail(ErrorCode::NotFound, fmt::format("/{}: {}", path, error.message()));
    return target.string();
  }
  std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> names;
    const auto entry = at(folder);
    if (!entry || entry->kind != Kind::Folder) return names;
    std::error_code error;
    for (const auto& child : fs::directory_iterator(root_ / folder, error))
      names.push_back(child.path().filename());
    return names;
  }

 private:
  fs::path root_;
};

class ExtFileTree final : public FileTree {
 public:
  ExtFileTree(ExtFiles files, std::map<std::string, FileFact> list, std::uint32_t root_mode)
      : files_(std::move(files)), list_(std::move(list)), root_mode_(root_mode) {}

  std::optional<Entry> at(const std::string& path) const override {
    if (path.empty()) return Entry{Kind::Folder, 0, true, root_mode_ & kPermissions};
    const auto found = list_.find(path);
    if (found == list_.end()) return std::nullopt;
    const auto mode = found->second.mode;
    const auto kind = S_ISREG(mode)   ? Kind::File
                      : S_ISDIR(mode) ? Kind::Folder
                      : S_ISLNK(mode) ? Kind::Link
                                      : Kind::Other;
    return Entry{kind, found->second.size_bytes, (mode & 0111) != 0, mode & kPermissions};
  }
  Result<std::string> read(const std::string& path, std::size_t max_bytes) const override {
    const auto found = list_.find(path);
    if (found == list_.end())
      return fail(ErrorCode::NotFound, fmt::format("/{} is not there", path));
    return files_.read(found->second.inode, max_bytes);
  }
  std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> names;
    const std::string prefix = folder.empty() ? "" : folder + "/";
    for (auto it = list_.lower_bound(prefix); it != list_.end() && it->first.starts_with(prefix);
         ++it)
      if (const auto name = it->first.substr(prefix.size());
          !name.empty() && name.find('/') == std::string::npos)
        names.push_back(name);
    return names;
  }

 private:
  ExtFiles files_;
  std::map<std::string, FileFact> list_;
  std::uint32_t root_mode_;
};

}  // namespace

Result<std::string> FileTree::resolve(const std::string& path) const {
  auto left = partsOf(path);
  std::vector<std::string> done;
  int links = 0;
  while (!left.empty()) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part == "..") {
      if (!done.empty()) done.pop_back();  // of "/" it is "/"
      continue;
    }
    done.push_back(part);
    const std::string here = joined(done);
    const auto entry = at(here);
    if (!entry)
      return fail(ErrorCode::NotFound,
                  here == path || links == 0
                      ? fmt::format("/{} is not there", here)
                      : fmt::format("/{} leads to /{}, which is not there", path, here));
    if (entry->kind != Kind::Link) continue;
    if (++links > kMaxLinks)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("/{} is a link that leads in a circle", path));
    TRY(target, read(here, kMaxLinkBytes));
    if (target.starts_with('/'))
      done.clear();
    else
      done.pop_back();
    const auto more = partsOf(target);
    left.insert(left.begin(), more.begin(), more.end());
  }
  return joined(done);
}

std::unique_ptr<FileTree> openFolderTree(const fs::path& root) {
  return std::make_unique<FolderTree>(root);
}

Result<std::unique_ptr<FileTree>> openExtTree(const fs::path& image, std::uint64_t offset_bytes) {
  TRY(files, ExtFiles::open(image, offset_bytes));
  TRY(list, files.list());
  TRY(root_mode, files.rootMode());
  return std::unique_ptr<FileTree>(new ExtFileTree(std::move(files), std::move(list), root_mode));
}

Result<std::string> placeBelow(const fs::path& root, const std::string& name) {
  const FolderTree tree(root);
  auto left = partsOf(name);
  std::vector<std::string> done;
  int links = 0;
  while (!left.empty()) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part == "..") {
      if (done.empty())
        return fail(ErrorCode::InvalidInput,
                    fmt::format("\"{}\" leads out of the image by a link", name));
      done.pop_back();
      continue;
    }
    done.push_back(part);
    if (left.empty()) break;  // the name's own last part: what links say stands before it
    const std::string here = joined(done);
    const auto entry = tree.at(here);
    if (!entry && links > 0)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" goes by a link to /{}, which is not there", name, here));
    if (!entry || entry->kind != FileTree::Kind::Link) continue;
    if (++links > kMaxLinks)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" goes by a link that leads in a circle", name));
    TRY(target, tree.read(here, kMaxLinkBytes));
    done.pop_back();
    if (target.starts_with('/')) done.clear();
    const auto more = partsOf(target);
    left.insert(left.begin(), more.begin(), more.end());
  }
  return joined(done);
}

}  // namespace muster::provision
