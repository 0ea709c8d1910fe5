// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/answers.h"

#include "base/utf8.h"
#include "bmc/redfish/reply.h"

#include <fmt/format.h>

namespace muster::bmc {
namespace {

constexpr int kOk = 200;
constexpr std::size_t kShownTypeBytes = 60;

}  // namespace

Result<void> expectResource(const RedfishReply& reply, const std::string& path) {
  // 202 and 204 answer a task monitor and have no resource.
  if (reply.status != kOk || reply.body.is_object()) return {};
  const auto type = reply.header("Content-Type");
  return fail(
      ErrorCode::Unavailable,
      fmt::format("GET {}: the BMC answered 200, but with no complete JSON object ({})", path,
                  type.empty() ? "no Content-Type" : cutToBytes(type, kShownTypeBytes)));
}

Result<Json*> membersOf(RedfishReply& reply, const std::string& path) {
  const auto list = reply.body.is_object() ? reply.body.find("Members") : reply.body.end();
  if (list != reply.body.end() && list->is_array()) return &*list;
  return fail(ErrorCode::Unavailable,
              fmt::format("GET {}: the BMC answered a collection without a list of Members", path));
}

}  // namespace muster::bmc
