// Reads one answer with a family's program: bytes in, events out.
//
// Events are never taken back. What may be the beginning of a fixed part is
// held until it is decided, and blanks before one (kBlanksMax at most), and a
// call's head until its tool is known. An answer that leaves the program is
// text from there on, the head of a call that had not begun included, behind
// one kFault.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/dialogue.h"
#include "output/description/program.h"
#include "output/reader/shape_reader.h"
#include "output/tools.h"

namespace hearth::output {

class Walker final : private CallSink {
 public:
  static constexpr std::size_t kBlanksMax = 32;

  // `in_thought`: the prompt ends inside the reasoning.
  Walker(std::shared_ptr<const Program> program,
         std::shared_ptr<const ToolSet> tools, bool in_thought);
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  // Whole characters, or the code of a marker (Program).
  void Push(std::string_view bytes);
  // The answer is over.
  void Finish();
  // Events since the last call; neighbours of one kind are one.
  std::vector<AnswerEvent> Take();

 private:
  // Decides about the beginning of what is held; false: more must come first.
  bool Decide();
  bool TakeFixed(std::size_t n_blanks, bool& may_come);
  // A fixed part, which is held behind so many blanks.
  void Enter(int part, std::size_t n_blanks);
  int OpenAfter() const;
  bool BlanksMayCome() const;
  // One byte (or one marker) into the open part.
  void TakeOpen();
  void TakeText(std::string_view bytes);
  void TakeValue(std::string_view bytes);
  bool Leave();  // the open part; false after a fault
  void BeginValue();
  void EndValue();
  void Fault(const std::string& problem);

  bool BeginCall(const std::string& name) override;
  void Arguments(std::string_view json) override;
  void EndCall() override;
  void Emit(AnswerEvent::Kind kind, std::string_view text, int call = -1);

  const Part& here() const { return program_->at(at_); }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const ToolSet> tools_;
  int at_;
  bool inside_ = false;  // in the open part at_, else behind the part at_
  bool faulted_ = false;
  bool over_ = false;  // nothing more will come
  std::string held_;   // undecided
  std::string head_;   // taken since a call's part began, with no event yet
  std::optional<ShapeReader> shape_;

  int call_ = -1;                    // the newest call
  const Tool* tool_ = nullptr;       // of the open call
  bool in_call_ = false;             // a call is written, its end not seen
  int n_tags_ = 0;                   // arguments of it that came as tags
  std::string word_;                 // the name, key or value being read
  std::string key_;                  // the newest key
  TagForm form_ = TagForm::kEither;  // of the value being read
  bool value_began_ = false, line_end_held_ = false;
  std::vector<AnswerEvent> events_;
  int n_emitted_ = 0;
};

}  // namespace hearth::output
