// SPDX-License-Identifier: Apache-2.0
#include "pool/kube_roster.h"

#include "base/log.h"

namespace muster::pool::kube {
namespace {

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kPods = "/api/v1/pods";

}  // namespace

Async<std::optional<Node>> Roster::node(std::string name) {
  Request request;
  request.path = fmt::format("{}/{}", kNodes, name);
  CO_TRY(answer, co_await api_.send(std::move(request)));
  if (answer.status == 404) co_return std::optional<Node>();
  if (!answer.ok()) co_return fail(api_.failure(answer, "reading node " + name));
  CO_TRY(node, Node::parse(answer.body));
  co_return std::optional<Node>(std::move(node));
}

Async<std::vector<Pod>> Roster::podsOf(std::string name) {
  std::vector<std::pair<std::string, std::string>> query = {
      {"fieldSelector", "spec.nodeName=" + name}};
  CO_TRY(items, co_await api_.list(kPods, std::move(query)));
  std::vector<Pod> pods;
  for (const auto& item : items) {
    CO_TRY(pod, Pod::parse(item));
    pods.push_back(std::move(pod));
  }
  co_return std::move(pods);
}

Async<std::optional<Roster::Entry>> Roster::look(std::string name) {
  CO_TRY(entries, co_await list_.look(name));
  const auto found = entries->find(name);
  co_return found == entries->end() ? std::optional<Entry>() : std::optional<Entry>(found->second);
}

Async<Roster::List::Answer> Roster::ask(std::set<std::string> names) {
  if (names.size() > 1 && may_list_) {
    auto all = co_await askAll();
    if (all || all.error().code() != ErrorCode::Denied) co_return all;
    may_list_ = false;  // an account from before this was asked for: docs/pools.md names the right
    logWarning("pool", "{}; each node is asked for by itself", all.error().str());
  }
  co_return co_await askEach(std::move(names));
}

Async<Roster::List::Answer> Roster::askEach(std::set<std::string> names) {
  auto entries = std::make_shared<List::Entries>();
  for (const auto& name : names) {
    CO_TRY(found, co_await node(name));
    if (!found) continue;
    CO_TRY(pods, co_await podsOf(name));
    entries->emplace(name, Entry{std::move(*found), std::move(pods)});
  }
  co_return List::Answer(std::move(entries));
}

Async<Roster::List::Answer> Roster::askAll() {
  const auto asked = list_.now();
  auto entries = std::make_shared<List::Entries>();
  CO_TRY(nodes, co_await api_.list(kNodes, std::vector<std::pair<std::string, std::string>>()));
  for (auto& item : nodes) {
    item["kind"] = "Node";  // items of a list do not say what they are
    CO_TRY(node, Node::parse(item));
    auto name = node.name;
    entries->emplace(std::move(name), Entry{std::move(node), std::vector<Pod>()});
  }
  CO_TRY(pods, co_await api_.list(kPods, std::vector<std::pair<std::string, std::string>>()));
  for (const auto& item : pods) {
    const auto place = entries->find(textAt(item, {"spec", "nodeName"}));
    if (place == entries->end()) continue;  // not placed yet
    CO_TRY(pod, Pod::parse(item));
    place->second.pods.push_back(std::move(pod));
  }
  List::Answer all = std::move(entries);
  list_.keep(asked, all);
  co_return all;
}

}  // namespace muster::pool::kube
