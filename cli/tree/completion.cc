// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace muster::cli {
namespace {

using Visit = std::function<void(const CommandInfo&)>;

void eachCommand(const CommandInfo& command, const Visit& visit) {
  visit(command);
  for (const auto& below : command.commands) eachCommand(below, visit);
}

/// " bmc power": with a blank in front of each word; the program itself is "".
std::string pathText(const CommandInfo& command) {
  std::string out;
  for (const auto& word : command.path) out += " " + word;
  return out;
}

std::string longNames(const CommandInfo& command) {
  std::vector<std::string> names{"--help"};
  for (const auto& option : command.options)
    for (const auto& name : option.names)
      if (name.starts_with("--") && name != "--help") names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string commandNames(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const auto& below : command.commands) names.push_back(below.name());
  return fmt::format("{}", fmt::join(names, " "));
}

/// What may stand as a value: "@nodes", "@file", or the words themselves.
std::string valueText(const OptionInfo& option) {
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, " "));
  if (option.value == ValueKind::File) return "@file";
  const auto word = wordOf(option.value);
  return word.empty() ? word : "@" + word;
}

/// Lines of a case statement that both bash and zsh read: path → sub-commands, options, values.
std::string shellCases(const CommandInfo& tree) {
  std::string paths, words, values;
  const auto global = longNames(tree);
  eachCommand(tree, [&](const CommandInfo& command) {
    const auto path = pathText(command);
    if (!path.empty()) paths += fmt::format("{}\"{}\"", paths.empty() ? "" : "|", path);
    const auto positional =
        command.positionals.empty() ? std::string() : valueText(command.positionals.front());
    words +=
        fmt::format("    \"{}\") mu_commands=\"{}\"; mu_options=\"{}\"; mu_positional=\"{}\" ;;\n",
                    path, commandNames(command), longNames(command), positional);
    for (const auto& option : command.options)
      if (option.value != ValueKind::None)
        for (const auto& name : option.names)
          values += fmt::format("    \"{} {}\") mu_value=\"{}\" ;;\n", path, name,
                                valueText(option).empty() ? "@none" : valueText(option));
  });
  return fmt::format(R"sh(
# Which command the words so far name, and what may follow.
_muster_look() {{
  local word skip="" previous=""
  mu_path=""; mu_value=""; mu_commands=""; mu_options=""; mu_positional=""
  for word in "$@"; do
    if [ -n "$skip" ]; then skip=""; previous=""; continue; fi
    previous="$word"
    case "$word" in
      -*=*) previous=""; continue ;;
      -*) _muster_value "$mu_path" "$word"; [ -n "$mu_value" ] && skip=1; continue ;;
    esac
    case "$mu_path $word" in
      {}) mu_path="$mu_path $word" ;;
    esac
  done
  mu_value=""
  if [ -n "$skip" ]; then _muster_value "$mu_path" "$previous"; return; fi
  case "$mu_path" in
{}  esac
  [ -n "$mu_path" ] && mu_options="$mu_options {}"
}}
_muster_value() {{
  mu_value=""
  case "$1 $2" in
{}    *) case " $2" in
{}    esac ;;
  esac
}}
_muster_words() {{
  case "$1" in
    @none|@file|"") ;;
    @*) muster completion words "${{1#@}}" 2>/dev/null ;;
    *) printf '%s\n' $1 ;;
  esac
}}
)sh",
                     paths, words, global, values, [&] {
                       std::string out;
                       for (const auto& option : tree.options)
                         if (option.value != ValueKind::None)
                           for (const auto& name : option.names)
                             out += fmt::format(
                                 "      \" {}\") mu_value=\"{}\" ;;\n", name,
                                 valueText(option).empty() ? "@none" : valueText(option));
                       return out;
                     }());
}

std::string bashScript(const CommandInfo& tree) {
  return "# bash completion for muster; made by `muster completion bash`\n" + shellCases(tree) +
         R"sh(
_muster() {
  local mu_path mu_value mu_commands mu_options mu_positional cur="${COMP_WORDS[COMP_CWORD]}"
  _muster_look "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  COMPREPLY=()
  if [ -n "$mu_value" ]; then
    [ "$mu_value" = "@file" ] && { _muster_offer < <(compgen -f -- "$cur"); return; }
    _muster_offer < <(_muster_words "$mu_value")
    return
  fi
  case "$cur" in
    -*) _muster_offer < <(printf '%s\n' $mu_options) ;;
    *) if [ "$mu_positional" = "@file" ]; then _muster_offer < <(compgen -f -- "$cur")
       else _muster_offer < <(printf '%s\n' $mu_commands; _muster_words "$mu_positional"); fi ;;
  esac
}
# What stands one a line on the input. Never compgen -W, which expands what names of an inventory hold.
_muster_offer() {
  local word
  while IFS= read -r word; do
    [[ -n "$word" && "$word" == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
  done
}
complete -F _muster muster
)sh";
}

std::string zshScript(const CommandInfo& tree) {
  return "#compdef muster\n# zsh completion for muster; made by `muster completion zsh`\n" +
         shellCases(tree) + R"sh(
_muster() {
  setopt localoptions shwordsplit
  local mu_path mu_value mu_commands mu_options mu_positional
  _muster_look "${(@)words[2,CURRENT-1]}"
  if [ "$mu_value" = "@file" ]; then _files; return; fi
  if [ -n "$mu_value" ]; then compadd -- $(_muster_words "$mu_value"); return; fi
  case "${words[CURRENT]}" in
    -*) compadd -- $mu_options ;;
    *) if [ "$mu_positional" = "@file" ]; then _files
       else compadd -- $mu_commands $(_muster_words "$mu_positional"); fi ;;
  esac
}
if [ "$funcstack[1]" = "_muster" ]; then _muster "$@"; else compdef _muster muster; fi
)sh";
}

std::string fishQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fishArguments(const OptionInfo& option) {
  if (!option.choices.empty())
    return " -xa " + fishQuoted(fmt::format("{}", fmt::join(option.choices, " ")));
  if (option.value == ValueKind::File) return " -rF";
  const auto word = wordOf(option.value);
  if (!word.empty()) return fmt::format(" -xa '(muster completion words {} 2>/dev/null)'", word);
  return option.value == ValueKind::None ? "" : " -x";
}

std::string fishScript(const CommandInfo& tree) {
  std::string paths;
  eachCommand(tree, [&paths](const CommandInfo& command) {
    if (!command.path.empty()) paths += " " + fishQuoted(pathText(command));
  });
  std::string out = fmt::format(R"sh(# fish completion for muster; made by `muster completion fish`
complete -c muster -f
function __muster_at
  set -l path ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$path $word"{}
      set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
)sh",
                                paths);
  eachCommand(tree, [&out](const CommandInfo& command) {
    const auto condition = fishQuoted(fmt::format("__muster_at \"{}\"", pathText(command)));
    for (const auto& below : command.commands)
      out += fmt::format("complete -c muster -n {} -a {} -d {}\n", condition, below.name(),
                         fishQuoted(below.help));
    for (const auto& option : command.options) {
      out += fmt::format("complete -c muster{}",
                         command.path.empty() ? std::string() : " -n " + condition);
      for (const auto& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      out += fishArguments(option) + " -d " + fishQuoted(option.help) + "\n";
    }
    for (const auto& positional : command.positionals) {
      const auto arguments = fishArguments(positional);
      if (!arguments.empty() && arguments != " -x")
        out += fmt::format("complete -c muster -n {}{}\n", condition,
                           arguments == " -rF" ? " -F" : " -" + arguments.substr(3));
    }
  });
  return out;
}

}  // namespace

std::optional<std::string> completionScript(std::string_view shell, const CommandInfo& tree) {
  if (shell == "bash") return bashScript(tree);
  if (shell == "zsh") return zshScript(tree);
  if (shell == "fish") return fishScript(tree);
  return std::nullopt;
}

}  // namespace muster::cli
