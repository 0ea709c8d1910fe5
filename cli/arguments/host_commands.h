// SPDX-License-Identifier: Apache-2.0
// Commands that work on a host of the site (or need no site), and why no server is asked instead.
// Every command of the tree stands here, or asks a server (arguments.h): tests hold both against
// the tree and against the table of docs/commands.md. docs/adr/0386
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

/// Where a command does its work.
enum class Place {
  SiteHost,  ///< on the host whose state folder, keys or network it needs
  AnyHost    ///< anywhere: it asks neither store nor server
};

struct HostCommand {
  std::string_view words;  ///< "fabric diff"; a group's words stand for all of its commands
  Place place;
  std::string_view why;  ///< "the site's keys do not leave its host"
};

const std::vector<HostCommand>& hostCommands();
/// Its own row, or its group's; null: the command asks a server.
const HostCommand* hostCommandOf(std::string_view words);
/// Of what was typed: "fabric diff".
std::string commandWords(const CLI::App& app);
/// What is said to --server.
std::string refusalText(const HostCommand& command, std::string_view words);

}  // namespace muster::cli
