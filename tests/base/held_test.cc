// SPDX-License-Identifier: Apache-2.0
#include "base/held.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {

// As a header sees it that only names the type: made, copied, moved and destroyed without it.
struct Content;
struct Owner {
  std::string name;
  Held<Content> content;
  HeldOptional<Content> extra;
};
namespace {
Owner copyOf(const Owner& owner) { return owner; }
Owner movedFrom(Owner& owner) { return std::move(owner); }
std::vector<Owner> twice(const Owner& owner) { return {owner, copyOf(owner)}; }
}  // namespace

struct Content {
  int count = 3;
  std::vector<std::string> words = {};
};

namespace {

TEST(Held, isWhatTheTypeSaysUntilItIsChanged) {
  Owner owner;
  EXPECT_EQ(std::as_const(owner).content->count, 3);
  owner.content->count = 4;
  EXPECT_EQ(std::as_const(owner).content->count, 4);
}

TEST(Held, copiesAreDeep) {
  Owner owner{.name = "a", .content = Content{5, {"x"}}, .extra = Content{6}};
  auto both = twice(owner);
  owner.content->words.push_back("y");
  owner.extra->count = 7;
  for (const Owner& copy : both) {
    EXPECT_EQ(copy.content->words, std::vector<std::string>{"x"});
    EXPECT_EQ(copy.extra->count, 6);
  }
  both[0] = owner;
  EXPECT_EQ(both[0].content->words.size(), 2u);
  EXPECT_EQ(both[1].content->words.size(), 1u);
}

TEST(Held, survivesAssignmentToItself) {
  Owner owner{.name = "a", .content = Content{5, {"x"}}, .extra = Content{6}};
  const Owner& same = owner;
  owner = same;
  EXPECT_EQ(owner.content->words, std::vector<std::string>{"x"});
  EXPECT_EQ(owner.extra->count, 6);
}

TEST(Held, whatWasMovedFromIsAsNew) {
  Owner owner{.name = "a", .content = Content{5, {"x"}}, .extra = Content{6}};
  const Owner moved = movedFrom(owner);
  EXPECT_EQ(moved.content->count, 5);
  EXPECT_EQ(moved.extra->count, 6);
  EXPECT_EQ(std::as_const(owner).content->count, 3);
  EXPECT_FALSE(owner.extra);
}

TEST(Held, referencesHoldWhileItIsChanged) {
  Owner owner{.name = {}, .content = Content{}, .extra = {}};
  const Content& seen = *owner.content;
  owner.content->count = 9;
  EXPECT_EQ(seen.count, 9);
}

TEST(HeldOptional, isEmptyUntilSomethingIsPutIn) {
  HeldOptional<Content> extra;
  EXPECT_FALSE(extra.has_value());
  extra.emplace().count = 1;
  EXPECT_EQ(extra->count, 1);
  extra = Content{2};
  EXPECT_EQ((*extra).count, 2);
  extra.reset();
  EXPECT_FALSE(extra);
  extra = std::nullopt;
  EXPECT_FALSE(extra);
}

}  // namespace
}  // namespace muster
