// SPDX-License-Identifier: Apache-2.0
#include "wire/erase_disks.h"

#include "wire/fields.h"

namespace muster::wire {
namespace {

constexpr std::size_t kMaxParamsBytes = 64u << 10, kMaxSerialBytes = 128;

}  // namespace

template <>
inline constexpr auto kFields<EraseParams> = std::tuple(
    field("node_serial", &EraseParams::node_serial, Text{kMaxSerialBytes}),
    field("disk_serials", &EraseParams::disk_serials, Texts{kMaxErasedDisks, kMaxSerialBytes})
        .optional(),
    field("wipe_allowed", &EraseParams::wipe_allowed, Flag{}).optional());

std::string toJson(const EraseParams& params) { return printMessage(params); }

Result<EraseParams> parseEraseParams(std::string_view text) {
  return parseMessage<EraseParams>(text, kMaxParamsBytes, "the parameters of an erasure", "params");
}

}  // namespace muster::wire
