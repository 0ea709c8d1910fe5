// SPDX-License-Identifier: Apache-2.0
// Keys and values that inventories called otherwise before 1.0. An old name is refused, with its
// place and the new name; it is never read as if it were the new one.
#pragma once

#include <span>
#include <string_view>

namespace muster::inventory {

struct RenamedKey {
  std::string_view object;  ///< ObjectSpec::name
  std::string_view old_key, new_key;
};

struct RenamedValue {
  std::string_view object, key;
  std::string_view old_value, new_value;
};

std::span<const RenamedKey> renamedKeys();
std::span<const RenamedValue> renamedValues();

/// What the key, or the value of a key, is called now; empty: it never had another name.
std::string_view newKeyOf(std::string_view object, std::string_view key);
std::string_view newValueOf(std::string_view object, std::string_view key, std::string_view value);

}  // namespace muster::inventory
