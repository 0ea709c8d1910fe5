// SPDX-License-Identifier: Apache-2.0
#include "fabric/opensm/opensm_files.h"

#include "base/checked_lines.h"
#include "fabric/opensm/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace muster::fabric {
namespace {

/// OpenSM reads a longer line as two.
constexpr LineLimits kLimits{.lines = 200'000, .line_bytes = 500};
constexpr std::size_t kGuidDigits = 16;

enum class Value {
  Number,
  Guid,
  Truth,
  Words,  ///< lower case, digits, '-', '_', ',': routing engines, modes
  Off,
  Folder,  ///< the daemon's own
  File     ///< `file` in it
};
struct Allowed {
  std::string_view option;
  Value value;
  std::string_view file{};
};
constexpr std::array kAllowed{
    Allowed{"guid", Value::Guid},
    Allowed{"sm_priority", Value::Number},
    Allowed{"subnet_prefix", Value::Guid},
    Allowed{"m_key", Value::Guid},
    Allowed{"routing_engine", Value::Words},
    Allowed{"root_guid_file", Value::File, kRootGuids},
    Allowed{"cn_guid_file", Value::File, kNodeGuids},
    Allowed{"io_guid_file", Value::File, kIoGuids},
    Allowed{"max_reverse_hops", Value::Number},
    Allowed{"use_ucast_cache", Value::Truth},
    Allowed{"honor_guid2lid_file", Value::Truth},
    Allowed{"sweep_interval", Value::Number},
    Allowed{"max_wire_smps", Value::Number},
    Allowed{"sminfo_polling_timeout", Value::Number},
    Allowed{"polling_retry_number", Value::Number},
    Allowed{"partition_config_file", Value::File, kPartitionsConf},
    Allowed{"part_enforce", Value::Words},
    Allowed{"allow_both_pkeys", Value::Truth},
    Allowed{"qos", Value::Truth},
    Allowed{"console", Value::Off},
    Allowed{"exit_on_fatal", Value::Truth},
    Allowed{"log_file", Value::File, kOpensmLog},
    Allowed{"log_max_size", Value::Number},
    Allowed{"force_log_flush", Value::Truth},
    Allowed{"dump_files_dir", Value::Folder},
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isHexDigit(char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); }
bool isGuid(std::string_view text) {
  return text.size() == kGuidDigits + 2 && text.starts_with("0x") &&
         std::ranges::all_of(text.substr(2), isHexDigit);
}
bool isWordSign(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') ||
         std::string_view("-_,").find(c) != std::string_view::npos;
}

bool isFine(const Allowed& allowed, std::string_view value, const std::filesystem::path& folder) {
  switch (allowed.value) {
    case Value::Number:
      return !value.empty() && value.size() < 10 && std::ranges::all_of(value, isDigit);
    case Value::Guid:
      return isGuid(value);
    case Value::Truth:
      return value == "TRUE" || value == "FALSE";
    case Value::Words:
      return !value.empty() && std::ranges::all_of(value, isWordSign);
    case Value::Off:
      return value == "off";
    case Value::Folder:
      return value == folder.string();
    case Value::File:
      return value == (folder / allowed.file).string();
  }
  return false;
}

Result<void> checkConfiguration(std::string_view text, const std::filesystem::path& folder) {
  using Text = std::optional<std::string_view>;
  TRY(seen, checkOptions(text, kLimits, ' ', kAllowed, [&](const Allowed& allowed, Text value) {
        return value && isFine(allowed, *value, folder);
      }));
  // Without it OpenSM asks on its terminal which port to take, or takes any.
  if (!seen.contains("guid")) return fail(ErrorCode::InvalidInput, "option guid is missing");
  return {};
}

Result<void> checkGuids(std::string_view text) {
  return checkLines(text, kLimits, [](std::string_view line) -> std::string {
    return isGuid(line) ? "" : "no GUID: 0x and 16 digits";
  });
}

}  // namespace

io::Command opensmCommand(io::Command called, const std::filesystem::path& folder) {
  called.env["OSM_CACHE_DIR"] = folder.string();
  called.env["OSM_TMP_DIR"] = folder.string();
  return called;
}

Result<void> checkOpensmFile(std::string_view name, std::string_view text,
                             const std::filesystem::path& folder) {
  if (name == kOpensmConf) return checkConfiguration(text, folder);
  if (name == kRootGuids || name == kIoGuids || name == kNodeGuids) return checkGuids(text);
  if (name == kGuidToLid)
    return checkLines(text, kLimits, [](std::string_view line) -> std::string {
      const bool fine =
          std::ranges::all_of(line, [](char c) { return isHexDigit(c) || c == 'x' || c == ' '; });
      return fine ? "" : "no GUID and LIDs";
    });
  if (name == kPartitionsConf) {
    auto rules = parsePartitions(text);
    if (!rules) return fail(std::move(rules).error());
    return {};
  }
  return fail(ErrorCode::InvalidInput, "OpenSM reads no such file");
}

}  // namespace muster::fabric
