// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/tcp_roll_call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace muster::collective {
namespace {

constexpr std::uint64_t kMagic = 0x6c6c61632d6c6c72;  ///< "rll-call"
constexpr std::size_t kMaxNamed = 8;
constexpr std::chrono::milliseconds kPatience{500};  ///< for the words of who has connected

struct Question {
  std::uint64_t magic = kMagic, job = 0;
  RankStatus status;
};
static_assert(std::is_trivially_copyable_v<Question>);
struct Answer {
  char text[600] = {};
};

std::string nameOf(int rank, const std::vector<std::string>& addresses) {
  const auto at = static_cast<std::size_t>(rank);
  return at < addresses.size() && !addresses[at].empty()
             ? fmt::format("rank {} ({})", rank, addresses[at])
             : fmt::format("rank {}", rank);
}

}  // namespace

std::string someOf(std::vector<std::string> names) {
  const auto count = names.size();
  names.resize(std::min(count, kMaxNamed));
  if (count > kMaxNamed) names.push_back(fmt::format("{} more", count - kMaxNamed));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string evaluateRollCall(const std::vector<RankStatus>& statuses, int ranks,
                             const std::vector<std::string>& addresses) {
  std::vector<std::string> silent;
  for (int rank = 0; rank < ranks; ++rank)
    if (std::none_of(statuses.begin(), statuses.end(),
                     [rank](const RankStatus& each) { return each.rank == rank; }))
      silent.push_back(nameOf(rank, addresses));
  if (!silent.empty()) {
    return silent.size() == 1
               ? fmt::format(
                     "{} does not answer the roll call: it has ended, is stopped, or "
                     "is cut off",
                     silent.front())
               : fmt::format(
                     "{} do not answer the roll call: they have ended, are stopped, "
                     "or are cut off",
                     someOf(std::move(silent)));
  }
  const auto least = std::min_element(
      statuses.begin(), statuses.end(),
      [](const RankStatus& a, const RankStatus& b) { return a.exchanges < b.exchanges; });
  if (least == statuses.end() || least->waits_for < 0) return "all ranks answer";
  return fmt::format(
      "all ranks answer; {} has come least far, {} exchanges, and waits for {}: the "
      "way between them, or one of the two, is slow or broken",
      nameOf(least->rank, addresses), least->exchanges, nameOf(least->waits_for, addresses));
}

std::string takeRollCall(int listener, std::uint64_t job, const RankStatus& own, int ranks,
                         const std::vector<std::string>& addresses, StreamClock::time_point end) {
  std::vector<RankStatus> statuses{own};
  std::vector<Socket> streams;
  while (static_cast<int>(statuses.size()) < ranks) {
    auto came = acceptOne(listener, end);
    if (!came) break;
    Question question;
    if (!receiveAll(came->get(), &question, sizeof question,
                    std::min(end, StreamClock::now() + kPatience)) ||
        question.magic != kMagic || question.job != job)
      continue;
    const auto rank = question.status.rank;
    if (rank <= 0 || rank >= ranks ||
        std::any_of(statuses.begin(), statuses.end(),
                    [rank](const RankStatus& each) { return each.rank == rank; }))
      continue;
    statuses.push_back(question.status);
    streams.push_back(std::move(*came));
  }
  const auto said = evaluateRollCall(statuses, ranks, addresses);
  Answer answer;
  said.copy(answer.text, sizeof answer.text - 1);
  for (const auto& stream : streams)
    (void)sendAll(stream.get(), &answer, sizeof answer, StreamClock::now() + kPatience);
  return said;
}

Result<std::string> answerRollCall(const std::string& host, int port, std::uint64_t job,
                                   const RankStatus& own, StreamClock::time_point end) {
  TRY(stream, connectTo(host, port, end));
  Question question;
  question.job = job, question.status = own;
  TRY_OK(sendAll(stream.get(), &question, sizeof question, end));
  Answer answer;
  TRY_OK(receiveAll(stream.get(), &answer, sizeof answer, end));
  std::string said(answer.text, ::strnlen(answer.text, sizeof answer.text));
  std::erase_if(said, [](char c) { return c < ' ' || c > '~'; });
  return said;
}

}  // namespace muster::collective
