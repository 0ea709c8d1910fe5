// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/shares.h"

#include <algorithm>

namespace muster::provision {

namespace {

bool isSet(std::string_view bits, std::uint32_t index) {
  return index / 8 < bits.size() &&
         (static_cast<unsigned char>(bits[index / 8]) >> (7 - index % 8) & 1) != 0;
}

}  // namespace

std::optional<Share> Shares::next(std::string_view unneeded, std::uint32_t most, Time now) {
  most = std::clamp<std::uint32_t>(most, 1, kMaxSharePieces);
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < pieces(); ++i) {
    if (isSet(unneeded, i)) continue;
    if (given_[i].times > 0 && now - given_[i].last < kShareAgainAfter) continue;
    if (!best || given_[i].times < given_[*best].times) best = i;
    if (given_[*best].times == 0) break;
  }
  if (!best) return std::nullopt;
  Share share{*best, 0};
  const auto times = given_[*best].times;
  for (std::uint32_t i = *best;
       i < pieces() && share.count < most && !isSet(unneeded, i) && given_[i].times == times;
       ++i, ++share.count) {
    if (times > 0 && now - given_[i].last < kShareAgainAfter) break;
    ++given_[i].times;
    given_[i].last = now;
  }
  return share;
}

}  // namespace muster::provision
