// SPDX-License-Identifier: Apache-2.0
#include "provision/images/apt_sources.h"

#include "base/io/files.h"
#include "inventory/model/package_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace muster::provision {

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Debian's own archives: ".../debian" and ".../debian-security", over a protocol that mmdebstrap
/// can use by itself.
bool isDebianArchive(std::string uri) {
  while (!uri.empty() && uri.back() == '/') uri.pop_back();
  const bool fetchable = uri.starts_with("http://") || uri.starts_with("https://");
  return fetchable && (uri.ends_with("/debian") || uri.ends_with("/debian-security"));
}

void addLines(std::vector<std::string>& lines, const std::vector<std::string>& uris,
              const std::vector<std::string>& suites, const std::vector<std::string>& components,
              std::string_view suite) {
  if (!contains(components, "main")) return;
  const std::string base(suite);
  for (const std::string& uri : uris)
    for (const std::string& name : suites) {
      if (!isDebianArchive(uri) ||
          (name != base && name != base + "-updates" && name != base + "-security"))
        continue;
      if (std::string line = "deb " + uri + " " + name + " main"; !contains(lines, line))
        lines.push_back(std::move(line));
    }
}

void addStanza(std::vector<std::string>& lines, const std::map<std::string, std::string>& stanza,
               std::string_view suite) {
  const auto field = [&stanza](const char* name) {
    const auto found = stanza.find(name);
    return found == stanza.end() ? std::vector<std::string>{} : words(found->second);
  };
  if (contains(field("enabled"), "no") || !contains(field("types"), "deb")) return;
  addLines(lines, field("uris"), field("suites"), field("components"), suite);
}

void addDeb822(std::vector<std::string>& lines, std::string_view text, std::string_view suite) {
  std::istringstream stream{std::string(text)};
  std::map<std::string, std::string> stanza;
  std::string key;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) {
      addStanza(lines, stanza, suite);
      stanza.clear();
      key.clear();
    } else if (line[0] == '#') {
      continue;
    } else if (line[0] == ' ' || line[0] == '\t') {
      if (!key.empty()) stanza[key] += line;
    } else if (const auto colon = line.find(':'); colon != std::string::npos) {
      key = line.substr(0, colon);
      std::transform(key.begin(), key.end(), key.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      stanza[key] = line.substr(colon + 1);
    }
  }
  addStanza(lines, stanza, suite);
}

void addOneLine(std::vector<std::string>& lines, std::string_view text, std::string_view suite) {
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    line = line.substr(0, line.find('#'));
    if (const auto open = line.find('['); open != std::string::npos)
      if (const auto close = line.find(']', open); close != std::string::npos)
        line.erase(open, close - open + 1);
    const auto parts = words(line);
    if (parts.size() < 4 || parts[0] != "deb") continue;
    addLines(lines, {parts[1]}, {parts[2]}, {parts.begin() + 3, parts.end()}, suite);
  }
}

}  // namespace

std::vector<std::string> debianLines(std::string_view text, bool deb822, std::string_view suite) {
  std::vector<std::string> lines;
  deb822 ? addDeb822(lines, text, suite) : addOneLine(lines, text, suite);
  return lines;
}

std::vector<std::string> hostDebianLines(const std::filesystem::path& apt_folder,
                                         std::string_view suite) {
  std::vector<std::filesystem::path> files{apt_folder / "sources.list"};
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(apt_folder / "sources.list.d", ignored))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> lines;
  for (const auto& file : files) {
    const auto text = io::readFile(file);
    if (!text) continue;
    for (auto& line : debianLines(*text, file.extension() == ".sources", suite))
      if (!contains(lines, line)) lines.push_back(std::move(line));
  }
  return lines;
}

Result<std::filesystem::path> archiveKey(const inventory::PackageArchive& archive) {
  std::error_code error;
  auto key = std::filesystem::canonical(archive.key, error);
  if (error)
    return fail(ErrorCode::NotFound,
                fmt::format("the key {} of archive {} cannot be read: {}", archive.key.string(),
                            archive.name, error.message()));
  return key;
}

}  // namespace muster::provision
