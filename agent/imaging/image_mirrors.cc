// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/image_mirrors.h"

#include <algorithm>

namespace muster::agent {

namespace {

constexpr int kSilentUntilDropped = 2;  ///< failures one after the other
constexpr double kNewSampleWeight = 0.3;

}  // namespace

ImageMirrors::ImageMirrors(const std::vector<std::string>& urls) {
  for (const auto& url : urls) {
    const bool known = std::any_of(mirrors_.begin(), mirrors_.end(),
                                   [&url](const Mirror& mirror) { return mirror.url == url; });
    if (known) continue;
    Mirror mirror;
    mirror.url = url;
    mirrors_.push_back(std::move(mirror));
  }
}

std::size_t ImageMirrors::usable() const {
  return static_cast<std::size_t>(std::count_if(
      mirrors_.begin(), mirrors_.end(), [](const Mirror& mirror) { return !mirror.dropped; }));
}

std::size_t ImageMirrors::pick() {
  double fastest = 1;
  for (const Mirror& mirror : mirrors_) fastest = std::max(fastest, mirror.bytes_per_second);
  std::size_t best = mirrors_.size();
  double best_wait = 0;
  ++turn_;
  for (std::size_t i = 0; i < mirrors_.size(); ++i) {
    const std::size_t at = (turn_ + i) % mirrors_.size();
    const Mirror& mirror = mirrors_[at];
    if (mirror.dropped) continue;
    const double wait =
        (mirror.in_flight + 1) / (mirror.bytes_per_second > 0 ? mirror.bytes_per_second : fastest);
    if (best == mirrors_.size() || wait < best_wait) {
      best = at;
      best_wait = wait;
    }
  }
  ++mirrors_[best].in_flight;
  return best;
}

void ImageMirrors::delivered(std::size_t index, std::uint64_t bytes, double seconds) {
  Mirror& mirror = mirrors_[index];
  --mirror.in_flight;
  mirror.silent = 0;
  const double speed = static_cast<double>(bytes) / std::max(seconds, 1e-6);
  mirror.bytes_per_second =
      mirror.bytes_per_second > 0
          ? mirror.bytes_per_second + kNewSampleWeight * (speed - mirror.bytes_per_second)
          : speed;
}

bool ImageMirrors::failed(std::size_t index, Fault fault, const std::string& why) {
  Mirror& mirror = mirrors_[index];
  --mirror.in_flight;
  if (fault == Fault::Silent && ++mirror.silent < kSilentUntilDropped) return false;
  return drop(mirror, fault, why);
}

bool ImageMirrors::markCorrupt(std::size_t index, const std::string& why) {
  return drop(mirrors_[index], Fault::Corrupt, why);
}

bool ImageMirrors::drop(Mirror& mirror, Fault fault, const std::string& why) {
  if (mirror.dropped) return true;  // another lane has said so meanwhile
  if (usable() > 1) {
    mirror.dropped = true;
    mirror.corrupt = fault == Fault::Corrupt;
    mirror.why = why;
    return true;
  }
  // The last one. If others were only silent, it may be the network, or this one is worse than they
  // are: all are asked again.
  bool others = false;
  for (Mirror& other : mirrors_) {
    if (!other.dropped || other.corrupt) continue;
    other.dropped = false;
    other.silent = 0;
    others = true;
  }
  if (fault == Fault::Corrupt && others) {
    mirror.dropped = mirror.corrupt = true;
    mirror.why = why;
    return true;
  }
  return false;
}

std::vector<ImageMirrors::Dropped> ImageMirrors::dropped() const {
  std::vector<Dropped> list;
  for (const Mirror& mirror : mirrors_)
    if (mirror.dropped) list.push_back({mirror.url, mirror.why});
  return list;
}

}  // namespace muster::agent
