// SPDX-License-Identifier: Apache-2.0
// Every `muster …` line of the pages is one that the real command line takes; nothing is run.
//
// In blocks of code a line must be complete. In running text a command may be named without what it
// needs. NODE, FILE, … stand for values; [what is in brackets] may be left out, and is tried.
#include "cli/tree/command_tree.h"

#include "base/io/files.h"
#include "cli/arguments/command_line.h"
#include "cli/arguments/host_commands.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

struct DocLine {
  std::string where;
  std::string text;  ///< from "muster" on
  bool complete = false;
};

/// Values of placeholders that a command line looks at.
const std::map<std::string, std::string> kValues{{"N", "1"},
                                                 {"HOURS", "1"},
                                                 {"PURPOSE", "images"},
                                                 {"DATE", "2026-01-31"},
                                                 {"MINUTES", "1"},
                                                 {"SHELL", "bash"},
                                                 {"DIGEST", std::string(64, 'a')},
                                                 {"FORMAT", "slurm"},
                                                 {"ID", "deadbeef"}};

std::vector<std::string> wordsOf(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  char quote = 0;
  bool any = false;
  const auto end = [&] {
    if (any || !word.empty()) out.push_back(std::exchange(word, ""));
    any = false;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ') {
      end();
    } else if (c == '#' && word.empty() && !any) {
      break;
    } else {
      word += c;
    }
  }
  end();
  return out;
}

/// What a shell would hand over, with the reader's values put in; nothing: it is no call of a
/// command.
std::vector<std::string> argumentsOf(const std::string& line) {
  static const std::set<std::string> kShell{">", "|", "&&", "||", ";", "<", ">>", "2>", "&"};
  std::vector<std::string> out;
  for (auto word : wordsOf(line)) {
    if (kShell.contains(word) || word.starts_with(">")) break;
    // [--option VALUE]: brackets of a hostlist have letters before them.
    if (word.starts_with('[')) word.erase(0, 1);
    if (word.ends_with(']') && word.find('[') == std::string::npos) word.pop_back();
    if (word.ends_with(';')) word.pop_back();
    if (const auto known = kValues.find(word); known != kValues.end()) word = known->second;
    if (word == "…" || word == "...") {
      if (!out.empty() && out.back().starts_with("--")) out.emplace_back("x");
      continue;
    }
    if (word.find('[') == std::string::npos && word.find("://") == std::string::npos)
      word = word.substr(0, word.find('|'));  // a|b: the first
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

std::vector<DocLine> linesOf(const fs::path& page) {
  static const std::regex command(R"(^\s*(?:\$ )?(?:sudo )?(?:[A-Z_]+=\S+ )*(muster .*)$)");
  static const std::regex inline_code(R"(`(?:sudo )?(muster [^`]+)`)");
  std::vector<DocLine> out;
  const auto text = io::readFile(page);
  EXPECT_TRUE(text) << page;
  std::istringstream stream(text.value_or(""));
  bool fenced = false;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const auto where = fmt::format("{}:{}", page.filename().string(), number);
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    std::smatch match;
    if (fenced) {
      if (std::regex_match(line, match, command)) out.push_back({where, match[1], true});
      continue;
    }
    for (std::sregex_iterator each(line.begin(), line.end(), inline_code), end; each != end; ++each)
      out.push_back({where, (*each)[1], false});
  }
  return out;
}

/// Empty: the line is taken.
std::string refusalOf(const DocLine& line) {
  auto words = argumentsOf(line.text);
  words.erase(words.begin());
  // Words of another program follow; muster cuts them off before it parses.
  if (words.size() >= 2 && words[0] == "lab" && words[1] == "exec") words.resize(2);
  Invocation call;
  CLI::App app{"muster"};
  buildCommandLine(app, call, {"sinfo"});
  std::ranges::reverse(words);
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
  } catch (const CLI::CallForVersion&) {
  } catch (const CLI::RequiredError& error) {
    if (line.complete) return error.what();
  } catch (const CLI::ArgumentMismatch& error) {
    if (line.complete) return error.what();
  } catch (const CLI::ValidationError& error) {
    // The file of a site.
    if (std::string_view(error.what()).find("does not exist") == std::string_view::npos &&
        std::string_view(error.what()).find("is no folder") == std::string_view::npos)
      return error.what();
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

TEST(CommandTreeDocs, everyCommandOfThePagesIsTaken) {
  std::vector<fs::path> pages{test::sourceFolder() / "README.md",
                              test::sourceFolder() / "SECURITY.md"};
  for (const auto& entry : fs::directory_iterator(test::sourceFolder() / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::ranges::sort(pages);
  int seen = 0;
  for (const auto& page : pages)
    for (const auto& line : linesOf(page)) {
      ++seen;
      const auto refusal = refusalOf(line);
      EXPECT_EQ(refusal, "") << line.where << ": " << line.text;
    }
  EXPECT_GT(seen, 200);
}

TEST(CommandTreeDocs, seesWhatIsWrong) {
  EXPECT_NE(refusalOf({"", "muster bmc pwoer gpu1 on", true}), "");
  EXPECT_NE(refusalOf({"", "muster plan --nodez gpu1", true}), "");
  EXPECT_NE(refusalOf({"", "muster rma gpu1", true}), "");
  EXPECT_EQ(refusalOf({"", "muster rma gpu1", false}), "");
  EXPECT_EQ(refusalOf({"", "muster rma NODE --out FILE.tar.zst   # a comment", true}), "");
  EXPECT_EQ(refusalOf({"", "muster cert export [--to FOLDER] > x", true}), "");
}

void eachLeaf(const CommandInfo& command, const std::function<void(const CommandInfo&)>& visit) {
  if (command.commands.empty()) visit(command);
  for (const auto& below : command.commands) eachLeaf(below, visit);
}

/// docs/commands.md has every command in one of two tables: it asks a server, or why it does not.
TEST(CommandTreeDocs, theTablesSayWhichCommandsAskAServer) {
  Invocation call;
  CLI::App app{"muster"};
  buildCommandLine(app, call, {});
  const auto page = io::readFile(test::sourceFolder() / "docs/commands.md").value_or("");
  const auto begin = page.find("## Which commands ask a server");
  ASSERT_NE(begin, std::string::npos);
  const auto section = page.substr(begin, page.find("\n## ", begin + 4) - begin);
  const auto split = section.find("| asks no server | because |");
  ASSERT_NE(split, std::string::npos);
  eachLeaf(commandTree(app), [&](const CommandInfo& command) {
    const auto words = fmt::format("{}", fmt::join(command.path, " "));
    const auto* here = hostCommandOf(words);
    if (here) {
      EXPECT_NE(section.find(fmt::format("| `{}` | {} |", here->words, here->why), split),
                std::string::npos)
          << words;
      return;
    }
    const auto asks = section.substr(0, split);
    EXPECT_TRUE(asks.find("`" + words + "`") != std::string::npos ||
                asks.find("`" + words + " --") != std::string::npos)
        << words;
  });
}

}  // namespace
}  // namespace muster::cli
