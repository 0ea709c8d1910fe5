#include "pool/kube_roster.h"

#include "base/log.h"

#include <boost/asio/post.hpp>

namespace muster::pool::kube {
namespace {

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kPods = "/api/v1/pods";

}  // namespace

Async<std::optional<Node>> Roster::node(std::string name) {
  Request request;
  request.path = fmt::format("{}/{}", kNodes, name);
  auto ask = api_.send(std::move(request));
  CO_TRY(answer, co_await std::move(ask));
  if (answer.status == 404) co_return std::optional<Node>();
  if (!answer.ok()) co_return fail(api_.failure(answer, "reading node " + name));
  CO_TRY(node, Node::parse(answer.body));
  co_return std::optional<Node>(std::move(node));
}

Async<std::vector<Pod>> Roster::podsOf(std::string name) {
  std::vector<std::pair<std::string, std::string>> query = {{"fieldSelector", "spec.nodeName=" + name}};
  auto ask = api_.list(kPods, std::move(query));
  CO_TRY(items, co_await std::move(ask));
  std::vector<Pod> pods;
  for (const auto& item : items) {
    CO_TRY(pod, Pod::parse(item));
    pods.push_back(std::move(pod));
  }
  co_return std::move(pods);
}

Async<std::optional<Roster::Entry>> Roster::look(std::string name) {
  auto entries = list_;
  if (!entries || clock_.steady() - listed_at_ >= kRosterAge) {
    const bool first = !gathering_;
    if (first) gathering_ = std::make_shared<Round>();
    const auto round = gathering_;
    round->names.insert(name);
    auto wait = first ? lead(round) : round->answered.wait();
    co_await std::move(wait);
    if (!round->answer) co_return fail(round->answer.error());
    entries = *round->answer;
  }
  const auto found = entries->find(name);
  co_return found == entries->end() ? std::optional<Entry>() : std::optional<Entry>(found->second);
}

/// Asks for everybody who came before the question was put. Whatever ends the one who asks, the others are not left waiting.
Task<void> Roster::lead(std::shared_ptr<Round> round) {
  std::exception_ptr cancelled;
  try {
    auto executor = co_await asio::this_coro::executor;
    auto turn = asio::post(executor, asio::use_awaitable);
    co_await std::move(turn);
    if (gathering_ == round) gathering_.reset();
    auto question = ask(round->names);
    round->answer = co_await std::move(question);
  } catch (...) {
    cancelled = std::current_exception();
  }
  if (gathering_ == round) gathering_.reset();
  round->answered.set();
  if (cancelled) std::rethrow_exception(cancelled);
}

Async<std::shared_ptr<const Roster::Entries>> Roster::ask(std::set<std::string> names) {
  if (names.size() > 1 && may_list_) {
    auto question = askAll();
    auto all = co_await std::move(question);
    if (all || all.error().code() != ErrorCode::Denied) co_return all;
    may_list_ = false;  // an account from before this was asked for: docs/pools.md names the right
    logWarning("pool", "{}; each node is asked for by itself", all.error().str());
  }
  auto question = askEach(std::move(names));
  co_return co_await std::move(question);
}

Async<std::shared_ptr<const Roster::Entries>> Roster::askEach(std::set<std::string> names) {
  auto entries = std::make_shared<Entries>();
  for (const auto& name : names) {
    auto look = node(name);
    CO_TRY(found, co_await std::move(look));
    if (!found) continue;
    auto list = podsOf(name);
    CO_TRY(pods, co_await std::move(list));
    entries->emplace(name, Entry{std::move(*found), std::move(pods)});
  }
  co_return std::shared_ptr<const Entries>(std::move(entries));
}

Async<std::shared_ptr<const Roster::Entries>> Roster::askAll() {
  const auto begun = clock_.steady();
  const auto orders = orders_;
  auto entries = std::make_shared<Entries>();
  auto ask_nodes = api_.list(kNodes, std::vector<std::pair<std::string, std::string>>());
  CO_TRY(nodes, co_await std::move(ask_nodes));
  for (auto& item : nodes) {
    item["kind"] = "Node";  // items of a list do not say what they are
    CO_TRY(node, Node::parse(item));
    auto name = node.name;
    entries->emplace(std::move(name), Entry{std::move(node), std::vector<Pod>()});
  }
  auto ask_pods = api_.list(kPods, std::vector<std::pair<std::string, std::string>>());
  CO_TRY(pods, co_await std::move(ask_pods));
  for (const auto& item : pods) {
    const auto place = entries->find(textAt(item, {"spec", "nodeName"}));
    if (place == entries->end()) continue;  // not placed yet
    CO_TRY(pod, Pod::parse(item));
    place->second.pods.push_back(std::move(pod));
  }
  std::shared_ptr<const Entries> all = std::move(entries);
  if (orders == orders_) {
    list_ = all;
    listed_at_ = begun;
  }
  co_return all;
}

}  // namespace muster::pool::kube
