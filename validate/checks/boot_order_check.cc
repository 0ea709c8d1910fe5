// SPDX-License-Identifier: Apache-2.0
// system.boot-order: what the firmware would start next, by its own variables, against the system
// that was installed. docs/adr/0281
#include "base/io/uefi_variables.h"
#include "base/printable.h"
#include "validate/checks/check_row.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace muster::validate {

namespace {

/// Written when the system is installed: its EFI system partitions by GUID, a line each.
constexpr const char* kInstalled = "etc/muster/esp-partitions";
constexpr const char* kFileSystems = "etc/fstab";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Systems that were installed before that file was written have one partition, in their fstab.
std::set<std::string> installedPartitions(const Host& host) {
  std::set<std::string> out;
  std::istringstream installed(host.text(kInstalled));
  for (std::string word; installed >> word;) out.insert(lower(word));
  if (!out.empty()) return out;
  constexpr std::string_view kTag = "PARTUUID=";
  std::istringstream table(host.text(kFileSystems));
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string source, at;
    if (words >> source >> at; source.starts_with(kTag) && at == "/boot/efi")
      out.insert(lower(source.substr(kTag.size())));
  }
  return out;
}

std::string shown(std::uint16_t number, const io::UefiOption& option) {
  return fmt::format("{} ({})", io::uefiOptionName(number), printable(option.name));
}

}  // namespace

Verdict checkSystemBootOrder(const nlohmann::json&, const Host& host) {
  const auto own = installedPartitions(host);
  if (own.empty())
    return noData(
        "neither /etc/muster/esp-partitions nor /etc/fstab names the partition that this system "
        "starts from; image the node again");
  const auto read =
      io::readUefiBoot(host.root / std::filesystem::path(io::kUefiVariables).relative_path());
  if (!read) return noData(read.error().str());
  if (!*read)
    return failed("the node was started by BIOS, its profile says UEFI: set it in the firmware");
  const auto& boot = **read;
  const auto is_own = [&](const io::UefiOption& option) {
    return option.kind == io::UefiOption::Kind::System && own.contains(option.partuuid);
  };
  std::vector<std::string> wrong, order;
  const io::UefiOption* first = nullptr;
  for (const auto number : boot.order) {
    const auto option = boot.options.find(number);
    if (option == boot.options.end()) continue;
    order.push_back(shown(number, option->second) + (option->second.active ? "" : ", off"));
    if (first || !option->second.active) continue;
    first = &option->second;
    if (!is_own(*first))
      wrong.push_back(shown(number, *first) + " comes before the installed system");
  }
  if (!first) wrong.emplace_back("no active option is in the boot order");
  for (const auto& [number, option] : boot.options)
    if (option.active && option.kind == io::UefiOption::Kind::System && !is_own(option))
      wrong.push_back(shown(number, option) + " is active and starts a system on another disk");
  auto verdict = wrong.empty() ? pass("the installed system comes first, no other system is active")
                               : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.evidence = {{"order", order}};
  return verdict;
}

}  // namespace muster::validate
