// String operations that both filters and methods offer. All of them pay for
// what they build before they build it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/run/vm.h"
#include "hearth/result.h"

namespace hearth::jinja {

// str.replace; `count` < 0 replaces all.
Result<std::string> ReplaceText(Vm& vm, const std::string& text,
                                const std::string& from, const std::string& to,
                                std::int64_t count);

// `n` fill characters around `text` so that it is `width` wide: all on the
// left for align '>', on the right for '<', split for '^'.
Result<std::string> PadText(Vm& vm, const std::string& text, std::int64_t width,
                            std::string_view fill, char align);

// str.splitlines.
std::vector<std::string> SplitLines(std::string_view text, bool keep_ends);

// separator.join(parts).
Result<std::string> JoinTexts(Vm& vm, const std::vector<std::string>& parts,
                              const std::string& separator);

// A string argument, or the error that `what` needs one.
Result<std::string> StringArg(const Value& value, const char* what);
// An integer argument; `fallback` when undefined or none.
Result<std::int64_t> IntArg(const Value& value, std::int64_t fallback,
                            const char* what);

}  // namespace hearth::jinja
