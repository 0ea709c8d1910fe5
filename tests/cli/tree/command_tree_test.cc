// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: every command has an example that parses, completion completes it,
// and its manual page is one.
#include "cli/tree/command_tree.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "cli/arguments/command_line.h"
#include "cli/arguments/host_commands.h"
#include "cli/exit_code.h"
#include "cli/tree/completion.h"
#include "cli/tree/examples.h"
#include "cli/tree/man_page.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <set>

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Line {
  Line() { buildCommandLine(app, call, {"sinfo"}); }
  Invocation call;
  CLI::App app{"muster"};
};

void eachLeaf(const CommandInfo& command, const std::function<void(const CommandInfo&)>& visit) {
  if (command.commands.empty()) visit(command);
  for (const auto& below : command.commands) eachLeaf(below, visit);
}

TEST(CommandTree, everyCommandHasAnExampleInItsHelp) {
  const Line line;
  std::set<std::string, std::less<>> named;
  for (const auto& example : examples()) {
    EXPECT_TRUE(named.insert(std::string(example.command)).second) << example.command;
    EXPECT_TRUE(example.line.starts_with("muster " + std::string(example.command))) << example.line;
  }
  eachLeaf(commandTree(line.app), [&named](const CommandInfo& command) {
    const auto path = fmt::format("{}", fmt::join(command.path, " "));
    EXPECT_TRUE(named.contains(path)) << path;
    EXPECT_THAT(command.footer, HasSubstr("Example: muster " + path));
    EXPECT_FALSE(command.help.empty()) << path;
  });
}

/// Words as a shell splits them; what is behind > or | is the shell's.
std::vector<std::string> wordsOf(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) out.push_back(std::exchange(word, ""));
      any = false;
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(word);
  const auto shell = std::ranges::find_if(out, [](const auto& w) { return w == ">" || w == "|"; });
  out.erase(shell, out.end());
  return out;
}

TEST(CommandTree, everyExampleParses) {
  for (const auto& example : examples()) {
    if (example.command == "lab exec") continue;  // its words are cut off before they are parsed
    if (example.command == "fabric qos-check") continue;  // the file that it names must be there
    Line line;
    auto words = wordsOf(example.line);
    ASSERT_FALSE(words.empty());
    std::vector<std::string> reversed(words.rbegin(), words.rend() - 1);
    try {
      line.app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      ADD_FAILURE() << example.line << ": " << error.what();
    }
    EXPECT_TRUE(line.call.run) << example.line;
  }
}

/// Every command either asks a server or says why it does not, and nothing else stands in the
/// table.
TEST(CommandTree, everyCommandAsksAServerOrSaysWhyNot) {
  std::set<std::string_view> used;
  for (const auto& example : examples()) {
    if (example.command == "lab exec" || example.command == "fabric qos-check") continue;
    Line line;
    auto words = wordsOf(example.line);
    line.app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    const auto typed = commandWords(line.app);
    EXPECT_EQ(typed, example.command);
    const auto* here = hostCommandOf(typed);
    EXPECT_EQ(line.call.asks_server, here == nullptr) << typed;
    if (!here) continue;
    used.insert(here->words);
    EXPECT_THAT(refusalText(*here, typed),
                AllOf(HasSubstr("`muster " + typed + "`"), HasSubstr("leave out --server")));
  }
  for (const auto& row : hostCommands())
    EXPECT_TRUE(used.contains(row.words) || row.words == "fabric qos-check") << row.words;
}

// What was wrong: CLI11's own words name the largest double, in 309 digits.
TEST(CommandTree, aRateThatIsNoneIsToldInFewWords) {
  for (const char* rate : {"0", "-3", "inf", "nan", "fast"}) {
    Line line;
    try {
      line.app.parse(std::vector<std::string>{rate, "--min-gbps", "isolate", "validate"});
      ADD_FAILURE() << rate << " was taken";
    } catch (const CLI::ParseError& error) {
      EXPECT_LT(std::string(error.what()).size(), 150u) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("write Gb/s above 0"));
    }
  }
  Line line;
  line.app.parse(std::vector<std::string>{"350.5", "--min-gbps", "isolate", "validate"});
}

TEST(CommandTree, suggestsWhatWasMeant) {
  const Line line;
  EXPECT_EQ(adviceOnWords(line.app, {"stauts"}), "did you mean `muster status`?");
  EXPECT_EQ(adviceOnWords(line.app, {"bmc", "pwoer", "gpu1", "on"}),
            "did you mean `muster bmc power`?");
  EXPECT_EQ(adviceOnWords(line.app, {"plan", "--nodez", "gpu1"}), "did you mean --nodes?");
  EXPECT_EQ(adviceOnWords(line.app, {"--inventory", "plam", "stauts"}),
            "did you mean `muster status`?")
      << "the value of an option is no command";
  EXPECT_EQ(adviceOnWords(line.app, {"provision-everything"}),
            "there is no `muster provision-everything`");
  EXPECT_EQ(adviceOnWords(line.app, {}), "");
}

TEST(CommandTree, hidesWhatHasAnotherNameNow) {
  const Line line;
  for (const auto& command : commandTree(line.app).commands) EXPECT_NE(command.name(), "keep");
  EXPECT_THAT(*completionScript("bash", commandTree(line.app)), Not(HasSubstr(" keep")));
}

TEST(CommandTree, knowsHelpAndExitCodes) {
  const Line line;
  const auto help = line.app.help();
  EXPECT_THAT(help, AllOf(HasSubstr("Exit codes: 0 done"), HasSubstr("--detailed-exitcode")));
}

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    const Line line;
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "muster.bash",
                                    *completionScript("bash", commandTree(line.app))));
  }
  /// What bash offers behind these words; the last one is being typed.
  std::string offered(const std::string& words) {
    io::Command command;
    command.program = "bash";
    command.args = {
        "--norc", "-c",
        fmt::format("muster() {{ [ \"$1 $2\" = 'completion words' ] && printf '%s\\n' a-$3 b-$3; "
                    "}}; source {}; COMP_WORDS=(muster {}); "
                    "COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _muster; echo "
                    "\"${{COMPREPLY[*]}}\"",
                    (folder_ / "muster.bash").string(), words)};
    const auto ended = io::runBlocking(command);
    if (!ended) return ended.error().str();
    return ended->out + ended->err;
  }
  test::TempFolder folder_;
};

TEST_F(Completion, bashCompletesCommandsOptionsAndNames) {
  EXPECT_EQ(offered("pl"), "plan\n");
  EXPECT_EQ(offered("bmc pow"), "power\n");
  EXPECT_EQ(offered("--json bmc pow"), "power\n");
  EXPECT_EQ(offered("--inventory x.yaml sta"), "status\n") << "behind an option and its value";
  EXPECT_EQ(offered("plan --no"), "--nodes --no-refresh\n");
  EXPECT_EQ(offered("plan --nodes ''"), "a-nodes b-nodes\n");
  EXPECT_EQ(offered("status --profile b"), "b-profiles\n");
  EXPECT_EQ(offered("rollout status --id ''"), "a-rollouts b-rollouts\n");
  EXPECT_EQ(offered("why a"), "a-nodes\n") << "a positional";
  EXPECT_THAT(offered("rollout start --on-failure ''"), HasSubstr("roll-back"));
  EXPECT_THAT(offered("plan --jso"), HasSubstr("--json")) << "global options everywhere";
  EXPECT_EQ(offered("nosuch --x"), "\n");
}

TEST_F(Completion, bashTakesNamesAsTheyAre) {
  // Racks and pools are what an inventory, a table or a discovery says.
  const auto mark = (folder_ / "mark").string();
  const std::string script = fmt::format(
      "muster() {{ printf '%s\\n' '$(touch {0})' '`touch {0}`' 'row a' '*'; }}; source {1}; "
      "COMP_WORDS=(muster status --rack ''); COMP_CWORD=3; _muster; printf '%s\\n' "
      "\"${{COMPREPLY[@]}}\"",
      mark, (folder_ / "muster.bash").string());
  io::Command command;
  command.program = "bash";
  command.args = {"--norc", "-c", script};
  const auto ended = io::runBlocking(command);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_THAT(ended->out, AllOf(HasSubstr("row\\ a\n"), HasSubstr("\\*\n"), HasSubstr("touch")));
}

TEST_F(Completion, theOtherShellsAcceptTheirScript) {
  const Line line;
  EXPECT_FALSE(completionScript("tcsh", commandTree(line.app)));
  for (const char* shell : {"zsh", "fish"}) {
    const auto script = completionScript(shell, commandTree(line.app));
    ASSERT_TRUE(script);
    const auto file = folder_ / shell;
    ASSERT_TRUE(io::writeFileAtomic(file, *script));
    io::Command command;
    command.program = "sh";
    command.args = {"-c", fmt::format("command -v {0} >/dev/null || exit 77; {0} -n {1}", shell,
                                      file.string())};
    const auto ended = io::runBlocking(command);
    ASSERT_TRUE(ended);
    if (ended->code != 77) EXPECT_EQ(ended->code, 0) << shell << ": " << ended->err;
  }
}

TEST(ManPage, isWhatGroffReadsWithoutComplaint) {
  const Line line;
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "muster.1", manPage(commandTree(line.app), "0.1")));
  io::Command command;
  command.program = "sh";
  command.args = {"-c",
                  fmt::format("command -v groff >/dev/null || exit 77; groff -k -man -ww -z {}",
                              (folder / "muster.1").string())};
  const auto ended = io::runBlocking(command);
  ASSERT_TRUE(ended);
  if (ended->code == 77) GTEST_SKIP() << "groff is not here";
  EXPECT_EQ(ended->code, 0);
  EXPECT_EQ(ended->err, "");
}

TEST(ErrorJson, holdsWhatAScriptNeeds) {
  auto text =
      errorJson(Error(ErrorCode::Denied, "no").within("outer").at(SourceRef{"cluster.yaml", 3, 4}));
  EXPECT_THAT(text, AllOf(HasSubstr(R"("code":"denied")"), HasSubstr(R"("line":3)"),
                          HasSubstr(R"("retryable":false)"), HasSubstr(R"("context":["outer"])")));
}

}  // namespace
}  // namespace muster::cli
