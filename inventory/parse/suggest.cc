// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/suggest.h"

#include "inventory/model/bmc_trust.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace muster::inventory {

namespace {

constexpr std::size_t kMaxComparedLength = 64;
constexpr std::size_t kMaxListedWords = 16;

std::string plainForm(std::string_view word) {
  std::string out;
  for (char c : word)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Edits (insert, delete, replace, swap neighbours) between a and b.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view wrong, const std::vector<std::string_view>& words) {
  if (wrong.empty() || wrong.size() > kMaxComparedLength) return {};
  std::string form = plainForm(wrong);
  std::size_t best = std::max<std::size_t>(1, form.size() / 3) + 1;
  std::string out;
  for (std::string_view word : words) {
    if (word.size() > kMaxComparedLength) continue;
    std::string other = plainForm(word);
    std::size_t far = distance(form, other);
    if (form.size() >= 3 && other.starts_with(form)) far = std::min<std::size_t>(far, 1);
    if (far < best) {
      best = far;
      out = word;
    }
  }
  return out;
}

std::string didYouMean(std::string_view wrong, const std::vector<std::string_view>& words) {
  if (std::string near = nearest(wrong, words); !near.empty())
    return fmt::format("did you mean \"{}\"?", near);
  if (words.empty()) return "none is declared";
  std::vector<std::string_view> listed(
      words.begin(),
      words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), kMaxListedWords)));
  return fmt::format("known: {}{}", fmt::join(listed, ", "),
                     words.size() > listed.size() ? ", …" : "");
}

}  // namespace muster::inventory
