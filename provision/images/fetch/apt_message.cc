// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::provision {
namespace {

constexpr std::size_t kMaxShownBytes = 80;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string oneLine(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return out;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Result<AptMessage> parse(std::string_view text) {
  AptMessage out;
  bool is_first = true;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_first) {
      is_first = false;
      const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), out.number);
      if (error != std::errc() || at != line.data() + 3 || out.number < 100)
        return fail(ErrorCode::Corrupt, fmt::format("\"{}\" begins no message of apt's",
                                                    oneLine(line.substr(0, kMaxShownBytes))));
      out.words = trimmed(line.substr(3));
      continue;
    }
    if (line.starts_with(' ') && !out.fields.empty()) {  // goes on with the value before
      out.fields.back().second += fmt::format(" {}", trimmed(line));
      continue;
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0)
      return fail(ErrorCode::Corrupt, fmt::format("\"{}\" is no field of a message of apt's",
                                                  oneLine(line.substr(0, kMaxShownBytes))));
    out.fields.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return out;
}

}  // namespace

bool isSameAptName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string aptUnquoted(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_quoted = text[i] == '%' && i + 2 < text.size() &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (is_quoted) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> AptMessage::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (isSameAptName(key, name)) return value;
  return std::nullopt;
}

std::string toText(const AptMessage& message) {
  auto out = fmt::format("{} {}\n", message.number, oneLine(message.words));
  for (const auto& [name, value] : message.fields)
    out += fmt::format("{}: {}\n", oneLine(name), oneLine(value));
  return out + "\n";
}

ExpectedSize expectedSize(const AptMessage& asked) {
  const auto number = [&](std::string_view name) -> std::optional<std::uint64_t> {
    const auto text = asked.field(name).value_or("");
    std::uint64_t out = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (out == 0 || error != std::errc() || at != text.data() + text.size()) return std::nullopt;
    return out;
  };
  return {.exact = number("Expected-Checksum-FileSize"), .most = number("Maximum-Size")};
}

Result<std::optional<AptMessage>> AptMessageReader::next() {
  rest_.erase(0, std::min(rest_.find_first_not_of('\n'), rest_.size()));
  const auto end = rest_.find("\n\n");
  if (std::min(end, rest_.size()) > apt::kMaxMessageBytes)
    return fail(ErrorCode::Corrupt,
                fmt::format("a message of apt's has more than {} bytes", apt::kMaxMessageBytes));
  if (end == std::string::npos) return std::nullopt;
  TRY(message, parse(std::string_view(rest_).substr(0, end)));
  rest_.erase(0, end + 2);
  return message;
}

}  // namespace muster::provision
