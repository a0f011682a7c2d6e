#include "convert/huggingface/hf_export.h"

#include <vector>

#include "convert/huggingface/hf_tensors.h"
#include "convert/stream_writer.h"

namespace hearth {

Result<void> WriteHfTensors(const LoadedModel& model,
                            const HfDescription& description,
                            const std::string& path,
                            const WriteOptions& options) {
  HfTensorList list(model, description);
  const std::vector<HfTensor> tensors = list.Run();
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const HfTensor& t : tensors) {
    const std::uint64_t end = offset + t.bytes();
    header[t.name] = {{"dtype", InfoOf(t.type).name},
                      {"shape", t.shape},
                      {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> length;
  AppendLe(length, std::uint64_t{text.size()});
  HEARTH_ASSIGN(StreamWriter file,
                StreamWriter::Create(path, options, {},
                                     length.size() + text.size() + offset));
  HEARTH_TRY(file.Append(length));
  HEARTH_TRY(file.Append(AsBytes(text)));
  for (const HfTensor& t : tensors) HEARTH_TRY(file.Append(t.read()));
  return file.Commit();
}

}  // namespace hearth
