// A short text that references of other programs were computed from, in chunks
// of 64 tokens: tests/data/models/imatrix, and perplexities.
#pragma once

namespace hearth {

inline constexpr char kStory[] =
    "Once upon a time there was a little girl named Lily. She lived in a small "
    "house near\nthe woods with her mom and her dog. Every day Lily went out "
    "to play in the garden. One\nmorning she saw a big red ball under a tree. "
    "\"Whose ball is this?\" she asked. The dog\nran to the ball and barked. "
    "Lily was very happy. She threw the ball high up into the\nsky and the dog "
    "jumped to catch it. Then a boy came to the fence. He looked sad. \"I\n"
    "lost my ball,\" he said. Lily gave him the ball and smiled. \"We can play "
    "with it\ntogether,\" she said. The boy was not sad any more. They played "
    "all day long, and when\nthe sun went down they were good friends.\n";

}  // namespace hearth
