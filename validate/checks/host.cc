// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/host.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

namespace muster::validate {

std::string Host::text(const std::filesystem::path& file) const {
  std::ifstream in(root / file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string Host::line(const std::filesystem::path& file) const {
  std::ifstream in(root / file);
  std::string line;
  std::getline(in, line);
  const auto first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first, last - first + 1);
}

std::vector<std::string> Host::names(const std::filesystem::path& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<double> numberIn(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && std::isfinite(value)
             ? std::optional(value)
             : std::nullopt;
}

}  // namespace muster::validate
