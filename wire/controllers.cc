// SPDX-License-Identifier: Apache-2.0
#include "wire/controllers.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::wire {
namespace {

bool same(const io::Url& one, const io::Url& other) { return one.origin() == other.origin(); }

bool contains(const std::vector<io::Url>& urls, const io::Url& url) {
  return std::any_of(urls.begin(), urls.end(),
                     [&url](const io::Url& each) { return same(each, url); });
}

}  // namespace

Result<std::vector<io::Url>> parseControllers(std::string_view text) {
  std::vector<io::Url> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const std::string word(text.substr(begin, comma - begin));
    begin = comma + 1;
    if (word.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a controller's URL is missing in \"{}\"; write https://HOST:PORT, "
                              "several with commas between them",
                              text));
    TRY(url, io::Url::parse(word));
    if (url.scheme != "https")
      return fail(ErrorCode::InvalidInput,
                  "the controller's URL must be https, not \"" + word + "\"");
    if (contains(out, url))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("the controller {} is named twice", url.origin()));
    if (out.size() == kMaxControllers)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("more than {} controllers are named", kMaxControllers));
    out.push_back(std::move(url));
  }
  return out;
}

std::string toString(const std::vector<io::Url>& controllers) {
  std::string out;
  for (const auto& url : controllers) out += (out.empty() ? "" : ",") + url.origin();
  return out;
}

void Controllers::answered() {
  failures_ = 0;
  again_ = kTriesOfTheSame;
  proven_ = true;
}

bool Controllers::failed(bool silent) {
  if (several() && !silent && again_ > 0) {
    --again_;
    proven_ = false;
    return true;
  }
  next();
  if (++failures_ < urls_.size()) return false;
  failures_ = 0;
  return true;
}

void Controllers::next() {
  at_ = (at_ + 1) % urls_.size();
  again_ = 0;
  proven_ = false;
}

bool Controllers::learn(const std::vector<io::Url>& urls) {
  auto known = urls;
  if (known.size() < kMaxControllers && !contains(known, present())) known.push_back(present());
  const bool alike =
      known.size() == urls_.size() && std::equal(known.begin(), known.end(), urls_.begin(), same);
  if (alike || known.empty()) return false;
  const auto now = present();
  urls_ = std::move(known);
  const auto found = std::find_if(urls_.begin(), urls_.end(),
                                  [&now](const io::Url& url) { return same(url, now); });
  at_ = found == urls_.end() ? 0 : static_cast<std::size_t>(found - urls_.begin());
  if (found == urls_.end()) proven_ = false;
  return true;
}

}  // namespace muster::wire
