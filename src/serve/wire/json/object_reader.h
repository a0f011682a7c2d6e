// One object of a request, read so that no member is dropped in silence: what
// nobody asked for is named in `ignored`, at any depth.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/json/body_json.h"

namespace hearth::serve {

// What a parser gathers beside the request.
struct Ignored {
  std::vector<std::string> names = {};
  // Named once, and not more than a header can hold.
  void Add(const std::string& name);
  bool overflow = false;
};

class ObjectReader {
 public:
  // `path`: of the object, empty for the body. REQUIRES: `object` is one, and
  // outlives the reader, as `ignored` does.
  ObjectReader(const OrderedJson& object, std::string path, Ignored& ignored);

  // A member that is null is as one that is missing. Each takes the member.
  const OrderedJson* Find(const char* name);
  const OrderedJson* FindObject(const char* name);  // an error: see `Check`
  const OrderedJson* FindArray(const char* name);
  std::optional<std::string> Text(const char* name);
  std::optional<bool> Bool(const char* name);
  bool Bool(const char* name, bool fallback);
  std::optional<double> Number(const char* name, double min, double max);
  std::optional<std::int64_t> Integer(const char* name, std::int64_t min,
                                      std::int64_t max);

  // Has no effect: named when it is there and not empty.
  void Say(std::initializer_list<const char*> names);
  // Read by somebody else, or in no need of a word.
  void Take(std::initializer_list<const char*> names);
  // Refused when it is there; `remedy` is a sentence.
  void Refuse(const char* name, const std::string& remedy);
  // The first fault of all calls; members nobody took are named.
  Checked Finish();
  Checked Check() const;
  void Fault(const char* name, const std::string& message);

  std::string PathOf(const std::string& name) const;

 private:
  void Mistyped(const char* name, const char* wanted);

  const OrderedJson& object_;
  std::string path_;
  Ignored& ignored_;
  std::set<std::string, std::less<>> taken_;
  std::optional<WireError> fault_;
};

// A refusal that names `param`.
WireError BadField(const std::string& param, const std::string& message);

}  // namespace hearth::serve
