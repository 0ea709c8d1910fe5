// SPDX-License-Identifier: Apache-2.0
#include "api/site_reader.h"

#include "api/answers.h"
#include "api/unknown_names.h"
#include "app/site/effective_cluster.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/store/store_loss.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::api {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookPeriod = 1s;     ///< at rollouts that lie over the inventory
constexpr auto kRetryPeriod = 5s;    ///< of an inventory that could not be read
constexpr auto kFleetLife = 1s;      ///< of a fleet, when it was brought up to date quickly
constexpr int kFleetCostFactor = 4;  ///< so at most a fifth of the thread goes into making it
constexpr auto kTurnTime = 50ms;     ///< in a look, for nodes that the log does not name
constexpr std::size_t kLeastTurn = 64, kMostTurn = 2'000;  ///< of them
constexpr auto kPeerLife = 10s;                            ///< of what the host says of a user
constexpr std::size_t kMaxPeers = 1'000;

std::string keyOf(const io::PeerCredentials& peer) {
  return fmt::format("{} {} {}", peer.uid, peer.gid, fmt::join(peer.groups, ","));
}

}  // namespace

Result<std::unique_ptr<SiteReader>> SiteReader::open(const app::Options& options,
                                                     std::filesystem::path access_file) {
  TRY(store, app::openStoreForWriting(options));
  // One that others may write is no start; of one with wrong rows the others count (docs/adr/0365).
  TRY(access, AccessTable::read(access_file));
  (void)access;
  return std::unique_ptr<SiteReader>(
      new SiteReader(options, std::move(access_file), std::move(store)));
}

app::Options SiteReader::optionsFor(const std::string& actor) const {
  auto out = options_;
  out.actor = actor;
  return out;
}

bool SiteReader::mustReopen() {
  if (reload_.exchange(false)) return true;
  const auto now = Steady::now();
  if (now < look_again_) return false;
  look_again_ = now + (session_ ? Steady::duration(kLookPeriod) : Steady::duration(kRetryPeriod));
  if (!session_) return true;
  const auto mark = lifecycle::overlaysMark(*store_);
  return mark && *mark != rollouts_;
}

Result<app::Session*> SiteReader::session() {
  if (!mustReopen()) {
    if (session_) return session_.get();
    return fail(*session_failed_);
  }
  auto mark = lifecycle::overlaysMark(*store_);
  auto opened = [&]() -> Result<std::unique_ptr<app::Session>> {
    TRY(live, app::effectiveCluster(options_));
    return app::Session::openStored(options_, std::move(live));
  }();
  if (opened) {
    fleet_.reset();
    session_ = std::move(*opened);
    rollouts_ = mark.value_or("");
    session_failed_.reset();
    in_use_since_ = now();
    return session_.get();
  }
  logWarning("api", "the inventory could not be read: {}", opened.error().str());
  if (session_) {
    rollouts_ = mark.value_or("");  // said once
    return session_.get();
  }
  session_failed_ = Error(ErrorCode::Unavailable, opened.error().str());
  return fail(*session_failed_);
}

Result<const Fleet*> SiteReader::fleet() {
  TRY(open, session());
  const auto began = Steady::now();
  if (fleet_ && began < fleet_good_until_) return fleet_.get();
  if (!fleet_) {
    auto made = std::make_unique<Fleet>(*open);
    const auto& nodes = open->cluster().nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) made->index.emplace(nodes[i].name.str(), i);
    made->printed.resize(nodes.size());
    fleet_ = std::move(made);
    in_turn_ = kLeastTurn;
  }
  const auto as_of = now();
  TRY(look, fleet_->view.follow(in_turn_));
  fleet_->as_of = as_of;
  const auto ended = Steady::now();
  if (!look.is_anew && look.named + look.in_turn > 0)
    in_turn_ = std::clamp(
        static_cast<std::size_t>(
            kTurnTime / std::max<Steady::duration>(
                            1us, (ended - began) / static_cast<int>(look.named + look.in_turn))),
        kLeastTurn, kMostTurn);
  print(*open);
  // A reading of the whole store is followed by cheap looks; only one after the other is not.
  const bool is_rare = look.is_anew && !was_anew_;
  const auto cost = is_rare ? Steady::duration() : kFleetCostFactor * (ended - began);
  was_anew_ = look.is_anew;
  fleet_good_until_ = ended + std::max<Steady::duration>(kFleetLife, cost);
  return fleet_.get();
}

Result<const lifecycle::FactSet*> SiteReader::factsWith(const lifecycle::Subject& subject) {
  TRY_OK(fleet());
  TRY_OK(fleet_->view.readNow(subject));
  return &fleet_->view.facts();
}

void SiteReader::print(const app::Session& session) {
  const auto& cluster = session.cluster();
  for (std::size_t i = 0; i < fleet_->printed.size(); ++i) {
    auto& printed = fleet_->printed[i];
    if (printed.revision == fleet_->view.revision(i)) continue;
    printed.revision = fleet_->view.revision(i);
    const auto& node = cluster.nodes[i];
    auto json = nodeJson(fleet_->status.nodes[i], cluster.profileOf(node).pool);
    json["unit"] = node.unit;
    printed.json = jsonText(json);
  }
}

Result<std::optional<Identity>> SiteReader::identify(const io::PeerCredentials& peer) {
  const auto now = Steady::now();
  const auto key = keyOf(peer);
  if (const auto known = peers_.find(key); known != peers_.end() && now < known->second.until)
    return known->second.identity;
  // root corrects the file, and so must not need it.
  if (auto admin = AccessTable{}.identify(peer); admin && admin->role == Role::Admin)
    return std::optional(*std::move(admin));
  TRY(access, AccessTable::read(access_file_));
  auto found = access.identify(peer);
  if (!found && found.error().code() != ErrorCode::NotFound)
    return std::unexpected(std::move(found).error());
  if (peers_.size() >= kMaxPeers) peers_.clear();
  auto identity = found ? std::optional(*std::move(found)) : std::nullopt;
  peers_[key] = {identity, now + kPeerLife};
  return identity;
}

bool SiteReader::reopenIfReplaced() {
  const auto loss = lifecycle::storeLoss(*store_);
  if (!loss) return false;
  const auto say = [&](const std::string& words) {
    if (!std::exchange(loss_said_, true)) logWarning("api", "{}", words);
  };
  if (!app::storeExists(options_)) {
    say("the store was deleted under this server, which answers nothing until there is one again: "
        "muster restore, or start it anew");
    return false;
  }
  auto opened = app::openStoreForWriting(options_);
  if (!opened) {
    say(fmt::format("the store was replaced under this server, and cannot be opened: {}",
                    opened.error().str()));
    return false;
  }
  fleet_.reset();
  session_.reset();
  session_failed_.reset();
  look_again_ = {};
  rollouts_.clear();
  tokens_text_.reset();
  // Closing it would tidy up files that are another's by now.
  (void)store_.release();  // NOLINT(bugprone-unused-return-value)
  store_ = std::move(*opened);
  ++store_number_;
  loss_said_ = false;
  logWarning("api",
             "the store was replaced under this server (a backup was restored?): it answers from "
             "the new one from now on");
  return true;
}

std::shared_ptr<Doors> SiteReader::changedDoors() {
  if (!door_files_.empty() && marksOf(door_files_) == doors_mark_) return nullptr;
  peers_.clear();  // of the file as it was
  auto out = std::make_shared<Doors>(access_file_, options_.state / "ca/ca.crt");
  door_files_ = out->files();
  doors_mark_ = out->mark();
  access_problems_ = out->problems();
  return out;
}

std::optional<std::vector<std::string>> SiteReader::changedUnknownNames() {
  if (!tokens_text_) return std::nullopt;
  // Before the inventory is read: one that cannot be is not tried again each time.
  auto mark =
      fmt::format("{}\n{}\n{}", doors_mark_, muster::toString(in_use_since_), *tokens_text_);
  if (mark == names_mark_) return std::nullopt;
  names_mark_ = std::move(mark);
  const auto open = session();
  if (!open) return std::nullopt;
  const auto table = AccessTable::read(access_file_);
  const auto tokens = tokensFromText(*tokens_text_);
  std::vector<std::string> out;
  if (table) out = unknownInAccess(*table, &(*open)->cluster());
  if (tokens)
    std::ranges::move(unknownInTokens(*tokens, (*open)->cluster(), now()), std::back_inserter(out));
  return out;
}

Result<std::shared_ptr<const TokenTable>> SiteReader::changedTokens() {
  TRY(text, store_->getValue(kTokensKey));
  auto now_text = text.value_or("[]");
  if (tokens_text_ == now_text) return std::shared_ptr<const TokenTable>();
  TRY(tokens, tokensFromText(now_text));
  tokens_text_ = std::move(now_text);
  return std::make_shared<const TokenTable>(tokens);
}

}  // namespace muster::api
