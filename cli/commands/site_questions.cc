// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/site_questions.h"

#include <array>
#include <string>

namespace muster::cli {
namespace {

struct Question {
  const char* text;
  std::string app::SiteAnswers::* answer;
};

constexpr std::array<Question, 9> kQuestions{{
    {"Name of the cluster", &app::SiteAnswers::name},
    {"Provisioning network (10.20.0.0/16)", &app::SiteAnswers::network},
    {"This host's address on it (empty: the first)", &app::SiteAnswers::controller},
    {"DHCP: authoritative, or proxy beside another server", &app::SiteAnswers::dhcp},
    {"Network or range of the BMCs (empty: none)", &app::SiteAnswers::bmc_network},
    {"User of the BMCs", &app::SiteAnswers::bmc_user},
    {"File with the BMCs' password", &app::SiteAnswers::bmc_password_file},
    {"Debian suite of the first image", &app::SiteAnswers::suite},
    {"Scheduler: none or slurm", &app::SiteAnswers::scheduler},
}};

/// Right ones, in the place of those that were not asked for yet.
app::SiteAnswers unasked() {
  app::SiteAnswers out;
  out.name = "cluster";
  out.network = "10.20.0.0/16";
  return out;
}

}  // namespace

bool askForAnswers(std::istream& in, std::ostream& out, app::SiteAnswers& answers) {
  auto asked = answers;
  auto seen = unasked();
  for (const auto& [text, answer] : kQuestions)
    for (bool right = false; !right;) {
      out << text;
      if (!(answers.*answer).empty()) out << " [" << answers.*answer << "]";
      out << ": " << std::flush;
      std::string line;
      if (!std::getline(in, line)) return false;
      seen.*answer = line.empty() ? answers.*answer : line;
      const auto made = app::newInventory(seen);
      right = made.has_value();
      if (right)
        asked.*answer = seen.*answer;
      else
        out << "  " << made.error().text() << '\n';
    }
  answers = asked;
  return true;
}

}  // namespace muster::cli
