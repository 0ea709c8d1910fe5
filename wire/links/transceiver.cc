// SPDX-License-Identifier: Apache-2.0
#include "wire/links/transceiver.h"

#include <array>
#include <cstdlib>

namespace muster::links {

namespace {

constexpr std::size_t kMaxFieldBytes = 64;

/// What each tool calls it; ethtool first.
struct FieldRow {
  std::array<std::string_view, 2> labels;
  std::string Transceiver::* field;
};
constexpr std::array kFields = {
    FieldRow{{"Vendor name", "Vendor Name"}, &Transceiver::vendor},
    FieldRow{{"Vendor PN", "Vendor Part Number"}, &Transceiver::part},
    FieldRow{{"Vendor SN", "Vendor Serial Number"}, &Transceiver::serial}};

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

/// A memory that nobody has written is all of one byte; such text is no serial number.
bool isText(std::string_view text) {
  return !text.empty() && text != "N/A" && text.size() <= kMaxFieldBytes &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,-_/+()&") ==
             std::string_view::npos;
}

}  // namespace

std::string Transceiver::str() const {
  std::string out;
  for (const auto* word : {&vendor, &part, &serial})
    if (!word->empty()) out += (out.empty() ? "" : " ") + *word;
  return out;
}

std::optional<Transceiver> parseTransceiver(std::string_view text) {
  Transceiver out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto label = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    for (const auto& row : kFields)
      if ((label == row.labels[0] || label == row.labels[1]) && isText(value))
        out.*row.field = std::string(value);
    if (label == "Module temperature" || label == "Temperature [C]" ||
        label == "Temperature [C] ") {
      const std::string number(value);
      char* after = nullptr;
      if (const double celsius = std::strtod(number.c_str(), &after); after != number.c_str())
        out.temperature_c = celsius;
    }
  }
  return out.serial.empty() ? std::nullopt : std::optional(std::move(out));
}

}  // namespace muster::links
