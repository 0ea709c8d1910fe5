// SPDX-License-Identifier: Apache-2.0
// A table of fields: what it prints, what it reads, and which words say what is wrong.
#include "wire/fields.h"

#include <gmock/gmock.h>

namespace muster::wire {

struct Wheel {
  std::string name;
  std::optional<std::uint64_t> spokes;
};
enum class Colour { Red, Blue };
struct Cart {
  std::string owner, note;
  Colour colour = Colour::Red;
  bool painted = false;
  std::uint64_t load_kg = 0;
  std::vector<Wheel> wheels;
  std::vector<Colour> seen;
};

constexpr Words<Colour, 2> kColours{{{Colour::Red, "red"}, {Colour::Blue, "blue"}}};

template <>
inline constexpr auto kFields<Wheel> =
    std::tuple(field("name", &Wheel::name, Text{8}).checked(kNotEmpty),
               field("spokes", &Wheel::spokes, Maybe{Whole{99}}).omitted());

template <>
inline constexpr auto kFields<Cart> = std::tuple(
    field("owner", &Cart::owner, Text{8}), field("note", &Cart::note, Text{8}).omitted(),
    field("painted", &Cart::painted, Flag{}).omitted(),
    field("colour", &Cart::colour, Word<Colour, 2>{&kColours, 8}).onlyIf([](const Cart& cart) {
      return cart.painted;
    }),
    field("load_kg", &Cart::load_kg, Renamed{Whole{1000}, "weight_kg"}).optional(),
    field("wheels", &Cart::wheels, Items{2}),
    field("seen", &Cart::seen, KnownWords{&kColours, 4, 16}).omitted());

/// A later form of Wheel has more fields; a message holds one, and lists of both forms.
struct Axle {
  Wheel left;
  bool driven = true;
  std::uint64_t length_mm = 900;
  std::string note;
  std::vector<Wheel> spares;
};
struct EarlierWheel {};

template <>
inline constexpr auto kFields<EarlierWheel> = std::tuple(field("name", &Wheel::name, Text{8}));

template <>
inline constexpr auto kFields<Axle> = std::tuple(
    field("left", &Axle::left, Object{}), field("driven", &Axle::driven, Flag{}),
    field("length_mm", &Axle::length_mm, Whole{5000}).optional(),
    field("note", &Axle::note, Text{8}).omittedIf([](const Axle& axle) { return !axle.driven; }),
    field("spares", &Axle::spares, ItemsBy<EarlierWheel>{2}).optional());

namespace {

using ::testing::HasSubstr;

std::string why(std::string_view text) {
  const auto read = parseMessage<Cart>(text, 1000, "cart", "cart");
  return read ? "read" : read.error().str();
}

TEST(Fields, printWhatTheyRead) {
  const Cart plain{.owner = "a", .wheels = {{"front", {}}}};
  EXPECT_EQ(printMessage(plain), R"({"load_kg":0,"owner":"a","wheels":[{"name":"front"}]})")
      << "what is as in a new one, or does not belong to it, is left out";
  const Cart full{"a", "n", Colour::Blue, true, 7, {{"front", 0}}, {Colour::Blue}};
  const auto text = printMessage(full);
  EXPECT_EQ(
      text,
      R"({"colour":"blue","load_kg":7,"note":"n","owner":"a","painted":true,"seen":["blue"],"wheels":[{"name":"front","spokes":0}]})");
  const auto read = parseMessage<Cart>(text, 1000, "cart", "cart");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(printMessage(*read), text);
}

TEST(Fields, sayWhatIsWrongAndWhere) {
  EXPECT_EQ(why(R"({"owner":"a","wheels":[]})"), "read");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[],"unknown":1})"), "read") << "a newer sender";
  EXPECT_EQ(why(R"({"wheels":[]})"), "cart.owner is missing");
  EXPECT_EQ(why(R"({"owner":7,"wheels":[]})"), "cart.owner must be text");
  EXPECT_EQ(why(R"({"owner":"123456789","wheels":[]})"), "cart.owner is longer than 8 bytes");
  EXPECT_EQ(why(R"({"owner":"a","load_kg":1001,"wheels":[]})"),
            "cart.load_kg must be a whole number of at most 1000");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[{"name":"x"},{"name":""}]})"),
            "cart.wheels[1].name is empty");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[{"name":"x","spokes":100}]})"),
            "cart.wheels[0].spokes must be a whole number of at most 99");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[1,2,3]})"), "cart.wheels has more than 2 entries");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[],"painted":true})"), "cart.colour is missing");
  EXPECT_EQ(why(R"({"owner":"a","wheels":[],"painted":true,"colour":"green"})"),
            R"(cart.colour is not a known word: "green")");
  EXPECT_THAT(why(std::string(1001, ' ')), HasSubstr("cart is larger than 1000 bytes"));
  EXPECT_THAT(why("[]"), HasSubstr("cart is not a JSON object"));
}

TEST(Fields, areReadOfOlderAndNewerSenders) {
  const auto older = parseMessage<Cart>(R"({"owner":"a","wheels":[],"weight_kg":5})", 1000, "", "");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->load_kg, 5u) << "by the former key";
  const auto newer = parseMessage<Cart>(
      R"({"owner":"a","wheels":[],"seen":["red","ultraviolet","blue"]})", 1000, "", "");
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->seen, (std::vector{Colour::Red, Colour::Blue})) << "an unknown word is skipped";
}

TEST(Fields, messagesHoldOthersAndEarlierFormsOfThem) {
  const Axle axle{{"l", 3}, true, 1000, "n", {{"s", 4}}};
  const auto text = printMessage(axle);
  EXPECT_EQ(
      text,
      R"({"driven":true,"left":{"name":"l","spokes":3},"length_mm":1000,"note":"n","spares":[{"name":"s"}]})");
  const auto read = parseMessage<Axle>(text, 1000, "axle", "axle");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->left.spokes, 3u);
  EXPECT_EQ(read->spares.at(0).name, "s");
  EXPECT_FALSE(read->spares[0].spokes) << "the earlier form had none";
}

TEST(Fields, whatIsAbsentStaysAsInANewMessage) {
  const auto read =
      parseMessage<Axle>(R"({"left":{"name":"l"},"driven":false})", 1000, "axle", "axle");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->length_mm, 900u);
  const auto faultOf = [](std::string_view text) {
    const auto fault = parseMessage<Axle>(text, 1000, "axle", "axle");
    return fault ? "read" : fault.error().str();
  };
  EXPECT_EQ(faultOf(R"({"left":{"name":"l"}})"), "axle.driven is missing");
  EXPECT_EQ(faultOf(R"({"left":{"name":7},"driven":true})"), "axle.left.name must be text");
  EXPECT_EQ(faultOf(R"({"left":7,"driven":true})"), "axle.left must be an object");
}

TEST(Fields, whatIsNotPrintedMayStillBeRead) {
  const Axle axle{{"l", 3}, false, 900, "n", {}};
  EXPECT_EQ(printMessage(axle),
            R"({"driven":false,"left":{"name":"l","spokes":3},"length_mm":900,"spares":[]})");
  const auto read = parseMessage<Axle>(R"({"left":{"name":"l"},"driven":false,"note":"n"})", 1000,
                                       "axle", "axle");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->note, "n");
}

}  // namespace
}  // namespace muster::wire
