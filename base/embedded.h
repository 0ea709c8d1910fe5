// SPDX-License-Identifier: Apache-2.0
// Files that travel inside the binary (cmake/embed.cmake): recipes, templates, tables that people
// edit as plain files.
#pragma once

#include <span>
#include <string_view>

namespace muster {

struct EmbeddedFile {
  std::string_view name;  ///< relative to the folder of the recipes: "ramos/init"
  std::string_view content;
};

}  // namespace muster
