// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace muster::cli {
namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += fmt::format("\\&{}", c);
    else
      out += c;
  }
  return out;
}

std::string synopsis(const CommandInfo& command) {
  std::string out = "muster";
  for (const auto& word : command.path) out += " " + word;
  if (!command.options.empty()) out += " [options]";
  for (const auto& positional : command.positionals)
    out += positional.required ? " " + positional.names.front()
                               : " [" + positional.names.front() + "]";
  if (!command.commands.empty()) out += " command";
  return out;
}

void optionsOf(const CommandInfo& command, std::string& out) {
  for (const auto* list : {&command.positionals, &command.options})
    for (const auto& option : *list) {
      out += ".TP\n\\fB" + roff(fmt::format("{}", fmt::join(option.names, ", "))) + "\\fR";
      if (!option.choices.empty())
        out += " " + roff(fmt::format("{}", fmt::join(option.choices, "|")));
      else if (option.value != ValueKind::None && option.names.front().starts_with("-"))
        out += " \\fIvalue\\fR";
      out += "\n" +
             roff(!option.help.empty() ? option.help
                  : option.required    ? "Required."
                                       : "Optional.") +
             "\n";
    }
}

void commandsBelow(const CommandInfo& command, std::string& out) {
  for (const auto& below : command.commands) {
    out += ".SS " + roff(synopsis(below)) + "\n" + roff(below.help) + ".\n";
    optionsOf(below, out);
    if (!below.footer.empty()) out += ".PP\n.nf\n" + roff(below.footer) + "\n.fi\n";
    commandsBelow(below, out);
  }
}

}  // namespace

std::string manPage(const CommandInfo& command, std::string_view version) {
  auto name = std::string("muster");
  for (const auto& word : command.path) name += "-" + word;
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  auto out = fmt::format(".TH {} 1 \"\" \"muster {}\" \"muster manual\"\n.SH NAME\n{} \\- {}\n",
                         upper, version, roff(name), roff(command.help));
  out += ".SH SYNOPSIS\n.B " + roff(synopsis(command)) + "\n";
  if (!command.options.empty() || !command.positionals.empty()) {
    out += ".SH OPTIONS\n";
    optionsOf(command, out);
  }
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    commandsBelow(command, out);
  }
  if (!command.footer.empty()) out += ".SH NOTES\n.nf\n" + roff(command.footer) + "\n.fi\n";
  return out;
}

}  // namespace muster::cli
