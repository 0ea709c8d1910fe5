// SPDX-License-Identifier: Apache-2.0
#include "api/access_doctor.h"

#include "api/access_file.h"
#include "api/doors.h"
#include "api/unknown_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace muster::api {
namespace {

constexpr std::size_t kNamed = 5;  ///< lines of one finding

std::string firstOf(const std::vector<std::string>& lines) {
  const auto shown = std::min(lines.size(), kNamed);
  auto out =
      fmt::format("{}", fmt::join(lines.begin(), lines.begin() + std::ptrdiff_t(shown), "; "));
  if (lines.size() > shown) out += fmt::format("; and {} more", lines.size() - shown);
  return out;
}

}  // namespace

std::vector<app::DoctorLine> examineAccess(const std::filesystem::path& access_file,
                                           const std::filesystem::path& site_ca,
                                           const inventory::Cluster* cluster) {
  const char* const kWhat = "access";
  std::error_code unknown;
  if (!std::filesystem::exists(std::filesystem::symlink_status(access_file, unknown)))
    return {{kWhat,
             app::DoctorVerdict::Ok,
             fmt::format("{} is not there: root is admin, the group {} looks", access_file.string(),
                         kViewerGroup),
             {},
             {}}};
  std::vector<app::DoctorLine> out;
  const Doors doors(access_file, site_ca);
  if (!doors.problems().empty())
    out.push_back({kWhat, app::DoctorVerdict::Bad, firstOf(doors.problems()),
                   "whom it may be about is refused",
                   fmt::format("mend {}; it counts within ten seconds", access_file.string())});
  const auto table = AccessTable::read(access_file);
  if (!table) return out;
  if (const auto names = unknownInAccess(*table, cluster); !names.empty())
    out.push_back({kWhat, app::DoctorVerdict::Warning, firstOf(names),
                   "whom a row is meant for stays out, or sees an empty site",
                   fmt::format("correct the names in {}", access_file.string())});
  if (out.empty())
    out.push_back(
        {kWhat,
         app::DoctorVerdict::Ok,
         fmt::format("{}: every row is right, and its names are known", access_file.string()),
         {},
         {}});
  return out;
}

}  // namespace muster::api
