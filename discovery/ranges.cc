// SPDX-License-Identifier: Apache-2.0
#include "discovery/ranges.h"

#include "base/ip_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::discovery {
namespace {

using Span = std::pair<std::uint32_t, std::uint32_t>;

std::string trim(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

Result<Span> spanOf(const std::string& text) {
  if (text.find('/') != std::string::npos) {
    TRY(cidr, Cidr::parse(trim(text)));
    const auto first = cidr.network.value(), last = first | ~cidr.netmask().value();
    return cidr.prefix_bits < 31 ? Span{first + 1, last - 1} : Span{first, last};
  }
  const auto dash = text.find('-');
  TRY(first, Ipv4::parse(trim(text.substr(0, dash))));
  if (dash == std::string::npos) return Span{first.value(), first.value()};
  TRY(last, Ipv4::parse(trim(text.substr(dash + 1))));
  if (last < first)
    return fail(ErrorCode::InvalidInput,
                fmt::format("it runs backwards; write {}-{}", last.str(), first.str()));
  return Span{first.value(), last.value()};
}

}  // namespace

Result<Ranges> Ranges::parse(const std::vector<std::string>& texts) {
  std::vector<Span> spans;
  std::uint64_t count = 0;
  for (const auto& text : texts) {
    auto span = spanOf(text);
    if (!span)
      return fail(Error(ErrorCode::InvalidInput, span.error().text())
                      .within(fmt::format("range \"{}\"", text)));
    count += std::uint64_t(span->second) - span->first + 1;
    if (count > kMaxAddresses)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("more than {} addresses; scan a part of them at a time", kMaxAddresses));
    spans.push_back(*span);
  }
  std::sort(spans.begin(), spans.end());
  Ranges out;
  for (const auto& span : spans) {
    if (!out.spans_.empty() && span.first <= out.spans_.back().second)
      out.spans_.back().second = std::max(out.spans_.back().second, span.second);
    else
      out.spans_.push_back(span);
  }
  return out;
}

bool Ranges::contains(Ipv4 address) const {
  return std::any_of(spans_.begin(), spans_.end(), [&](const Span& span) {
    return span.first <= address.value() && address.value() <= span.second;
  });
}

std::vector<Ipv4> Ranges::addresses() const {
  std::vector<Ipv4> out;
  for (const auto& [first, last] : spans_)
    for (std::uint64_t value = first; value <= last; ++value)
      out.emplace_back(static_cast<std::uint32_t>(value));
  return out;
}

}  // namespace muster::discovery
