// Models in several GGUF files, NAME-00001-of-00003.gguf and so on, as
// llama-gguf-split writes them: the first has the keys, each has some of the
// tensors and says which part it is (split.no, split.count,
// split.tensors.count).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "formats/gguf/gguf.h"
#include "hearth/result.h"

namespace hearth {

// What a path says of a part. `index` counts from zero, as split.no does.
struct SplitPart {
  std::string stem;  // the path up to "-00001-of-..."
  int index = 0, count = 0;

  std::string PathOf(int part) const;
};
// Nothing for a path that does not end in -NNNNN-of-NNNNN.gguf.
std::optional<SplitPart> SplitPartOf(std::string_view path);

// A part beside the one that was opened.
struct GgufPartFile {
  MappedFile file;
  GgufFile gguf;
};

// All parts of the model that the file `path`, parsed as `gguf`, is a part of,
// in order and that file among them: then they are opened again. Empty when it
// is whole. kNotFound, naming it, for a part that is not there; kCorrupt for
// parts that do not belong together; kUnsupported for parts that were joined
// byte by byte, and for a part whose name does not lead to the others.
Result<std::vector<GgufPartFile>> OpenSplitParts(const GgufFile& gguf,
                                                 ByteSpan bytes,
                                                 const std::string& path);

}  // namespace hearth
