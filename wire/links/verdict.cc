// SPDX-License-Identifier: Apache-2.0
#include "wire/links/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::links {

namespace {

constexpr double kBitsPerWord = 32;
/// Of the line rate: beyond it the window was longer than said. Readings take a while, so a busy
/// link may seem to carry a little more than all.
constexpr double kMostLoad = 1.1;

constexpr std::string_view kCableAdvice =
    "clean and reseat both ends; if it goes on, swap the cable with a good neighbour's: errors "
    "that move with it are the cable's, errors "
    "that stay are the port's";
constexpr std::string_view kMeasureAgain = "measure again";

struct AdviceRow {
  std::string_view kind, advice;
};
constexpr std::array kAdvice = {
    AdviceRow{"bit-errors", kCableAdvice},
    AdviceRow{"recoveries", kCableAdvice},
    AdviceRow{"receive-errors", kCableAdvice},
    AdviceRow{"gone", "plug it in, or look at the port and at the power of its device"},
    AdviceRow{"flaps",
              "if neither end was restarted meanwhile: reseat both ends, then replace the cable or "
              "transceiver"},
    AdviceRow{"discards",
              "look for congestion, or for a receiver that takes nothing, behind this port"},
    AdviceRow{
        "damaged-before",
        "the link to blame is one that this traffic crossed before: look for receive-errors there"},
    AdviceRow{"partition",
              "a host sends with a partition that the port may not have: compare the PKey tables "
              "(muster fabric diff)"},
    AdviceRow{"counter-full", "clear the counters (perfquery -R) and measure again"},
    AdviceRow{"cleared",
              "something clears the counters (OpenSM's performance manager, UFM, a script): stop "
              "it meanwhile, and measure again"},
    AdviceRow{"ber-unproven", "measure for longer"},
    AdviceRow{"idle", "run a load meanwhile, for example nccl-tests' all_reduce_perf"},
    AdviceRow{"not-counted", kMeasureAgain},
    AdviceRow{"read-once", "read the counters again, the same ones twice"},
    AdviceRow{"too-much", "say the seconds between the two readings (--window), and measure again"},
    AdviceRow{"unknown-rate", kMeasureAgain},
};

/// Of the counters whose growth is a complaint as it stands.
struct KindRow {
  Counter counter;
  Grade grade;
  std::string_view kind;
};
constexpr std::array kKinds = {
    KindRow{Counter::Downs, Grade::Bad, "flaps"},
    KindRow{Counter::Recoveries, Grade::Bad, "recoveries"},
    KindRow{Counter::ReceiveErrors, Grade::Bad, "receive-errors"},
    KindRow{Counter::IntegrityErrors, Grade::Bad, "receive-errors"},
    KindRow{Counter::OverrunErrors, Grade::Bad, "receive-errors"},
    KindRow{Counter::Discards, Grade::Warning, "discards"},
    KindRow{Counter::RemoteErrors, Grade::Warning, "damaged-before"},
    KindRow{Counter::SentConstraints, Grade::Warning, "partition"},
    KindRow{Counter::ReceivedConstraints, Grade::Warning, "partition"},
};
/// Without these a port says nothing of its cable.
constexpr std::array kNeeded = {Counter::SymbolErrors, Counter::Recoveries, Counter::Downs,
                                Counter::ReceiveErrors};

class LinkEvaluation {
 public:
  LinkEvaluation(const PortGrowth& grown, Window window, std::string_view width_speed,
                 const Limits& limits)
      : grown_(grown),
        window_(window),
        width_speed_(width_speed),
        rate_(lineBitsPerSecond(width_speed)),
        limits_(limits) {}

  EndVerdict verdict() && {
    for (const auto& row : kKinds)
      if (const auto count = grown_.atLeast(row.counter))
        say(row.grade, row.kind, fmt::format("{} {}", count, rowOf(row.counter).words));
    whatIsNotKnown();
    load();
    if (rate_)
      bitErrors();
    else
      say(Grade::Unproven, "unknown-rate",
          fmt::format("the rate '{}' is not known, so symbol errors are no rate", width_speed_));
    std::stable_sort(out_.complaints.begin(), out_.complaints.end(),
                     [](const auto& a, const auto& b) { return a.grade > b.grade; });
    out_.grade = out_.complaints.empty() ? Grade::Good : out_.complaints.front().grade;
    return std::move(out_);
  }

 private:
  void say(Grade grade, std::string_view kind, std::string text) {
    out_.complaints.push_back({grade, std::string(kind), std::move(text)});
  }

  void whatIsNotKnown() {
    if (grown_.was_cleared)
      say(Grade::Unproven, "cleared",
          "its counters were cleared within the window: there may have been more");
    for (auto counter : kNeeded)
      if (!grown_[counter])
        say(Grade::Unproven, "not-counted",
            fmt::format("it does not count {}", rowOf(counter).words));
    readOnce();
    for (const auto& row : counterRows())
      if (row.meaning == Meaning::Error && grown_[row.counter] && grown_[row.counter]->is_full)
        say(Grade::Unproven, "counter-full", fmt::format("its counter of {} is full", row.words));
  }

  /// The end of a reading that was cut. A port that was not read at all has said so already.
  void readOnce() {
    if (!std::all_of(kNeeded.begin(), kNeeded.end(),
                     [this](Counter counter) { return grown_[counter].has_value(); }))
      return;
    for (const auto& row : counterRows())
      if ((row.meaning == Meaning::Error || row.meaning == Meaning::Drop) &&
          grown_.once[static_cast<std::size_t>(row.counter)])
        say(Grade::Unproven, "read-once",
            fmt::format("only one of the readings has its counter of {}", row.words));
  }

  void load() {
    std::optional<std::uint64_t> words;
    for (auto counter : {Counter::SentWords, Counter::ReceivedWords})
      if (const auto& grown = grown_[counter]; grown && grown->is_all)
        words = std::max(words.value_or(0), grown->at_least);
    if (words && rate_ && window_.longest_seconds > 0)
      out_.load = static_cast<double>(*words) * kBitsPerWord / (*rate_ * window_.longest_seconds);
    if (out_.load && *out_.load > kMostLoad)
      say(Grade::Unproven, "too-much",
          fmt::format("it carried {} words in {:.1f} s, {:.3g} times what {} can: the window was "
                      "another",
                      *words, window_.longest_seconds, *out_.load, width_speed_));
    out_.waits = grown_.atLeast(Counter::Waits);
    if (out_.waits)
      say(Grade::Good, "congested",
          fmt::format("waited {} ticks for credits while it sent {} words", out_.waits,
                      grown_.atLeast(Counter::SentWords)));
    if (limits_.min_load > 0 && out_.load.value_or(0) < limits_.min_load)
      say(Grade::Unproven, "idle",
          out_.load ? fmt::format("it carried {:.2f} % of its rate, {:.0f} % are asked for",
                                  *out_.load * 100, limits_.min_load * 100)
                    : std::string("how much it carried is not known"));
  }

  /// The longer window makes the rate lower, the shorter one higher: each bound takes the one that
  /// is against it.
  void bitErrors() {
    const auto& symbols = grown_[Counter::SymbolErrors];
    if (!symbols) return;
    const auto least =
        berBounds(symbols->at_least, *rate_ * window_.longest_seconds, limits_.confidence);
    const auto most =
        berBounds(symbols->at_least, *rate_ * window_.shortest_seconds, limits_.confidence);
    out_.ber = BerBounds{least.low, symbols->is_all ? most.high : 1, most.estimate};
    const auto bad = least.low > limits_.ber_bad, warn = least.low > limits_.ber_warn;
    if (bad || warn)
      say(bad ? Grade::Bad : Grade::Warning, "bit-errors",
          fmt::format("{} symbol errors in {:.1f} s: a BER of {:.1e}, at least {:.1e} ({:.0f} %), "
                      "{:.0e} is allowed",
                      symbols->at_least, window_.longest_seconds, most.estimate, least.low,
                      limits_.confidence * 100, bad ? limits_.ber_bad : limits_.ber_warn));
    if (bad || !symbols->is_all || most.high <= limits_.ber_bad) return;
    say(Grade::Unproven, "ber-unproven",
        fmt::format(
            "{} symbol errors in {:.1f} s prove no BER below {:.0e}; {:.0f} s without more would",
            symbols->at_least, window_.shortest_seconds, limits_.ber_bad,
            bitsThatProve(limits_.ber_bad, symbols->at_least, limits_.confidence) / *rate_));
  }

  const PortGrowth& grown_;
  const Window window_;
  const std::string_view width_speed_;
  const std::optional<double> rate_;
  const Limits& limits_;
  EndVerdict out_;
};

}  // namespace

std::string_view toString(Grade grade) {
  constexpr std::array<std::string_view, 4> kWords = {"good", "warning", "unproven", "bad"};
  return kWords.at(static_cast<std::size_t>(grade));
}

EndVerdict evaluateEnd(const PortGrowth& grown, Window window, std::string_view width_speed,
                       const Limits& limits) {
  return LinkEvaluation(grown, window, width_speed, limits).verdict();
}

std::optional<double> secondsToProve(std::string_view width_speed, const Limits& limits) {
  const auto rate = lineBitsPerSecond(width_speed);
  return rate ? std::optional(bitsThatProve(limits.ber_bad, 0, limits.confidence) / *rate)
              : std::nullopt;
}

std::string_view adviceFor(std::string_view kind) {
  const auto row = std::find_if(kAdvice.begin(), kAdvice.end(),
                                [kind](const auto& each) { return each.kind == kind; });
  return row == kAdvice.end() ? std::string_view{} : row->advice;
}

}  // namespace muster::links
