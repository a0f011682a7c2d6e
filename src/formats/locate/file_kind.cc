#include "formats/locate/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json.h"
#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::size_t kHeadBytes = 4096;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  const char* kind;
};

bool Matches(std::string_view head, const Magic& magic) {
  return head.size() > magic.offset &&
         head.substr(magic.offset).starts_with(magic.bytes);
}

constexpr Magic kPacked[] = {
    {0, "\x1f\x8b", "compressed by gzip; unpack it with gunzip"},
    {0, "\x28\xb5\x2f\xfd", "compressed by zstd; unpack it with unzstd"},
    {0, std::string_view("\xfd\x37zXZ\0", 6),
     "compressed by xz; unpack it with unxz"},
    {0, "BZh", "compressed by bzip2; unpack it with bunzip2"},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it"},
    {0, "Rar!\x1a\x07", "a RAR archive; unpack it"},
    {257, "ustar", "a tar archive; unpack it with tar -xf"},
};

constexpr Magic kForeign[] = {
    {0, "lmgg", "a GGML file of the time before GGUF; get the model as GGUF"},
    {0, "fmgg", "a GGML file of the time before GGUF; get the model as GGUF"},
    {0, "tjgg", "a GGML file of the time before GGUF; get the model as GGUF"},
    {0, "algg",
     "a LoRA adapter of the time before GGUF; give the model that it changes, "
     "as GGUF"},
    {0, "\x89HDF\r\n", "an HDF5 file (Keras); get the model as GGUF"},
    {4, "TFL3", "a TensorFlow Lite model; get the model as GGUF"},
    {0, "\x93NUMPY", "a NumPy array; get the model as GGUF"},
    {0, "MZ",
     "a program, not a model; of a llamafile take the .gguf file out with "
     "unzip"},
    {0,
     "\x7f"
     "ELF",
     "a program, not a model; of a llamafile take the .gguf file out with "
     "unzip"},
};

// White space and a byte order mark left out.
std::string_view TextStart(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  while (!head.empty() && std::isspace(static_cast<unsigned char>(head[0]))) {
    head.remove_prefix(1);
  }
  return head;
}

bool IsText(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto b = static_cast<unsigned char>(c);
    return b >= 0x20 ? b != 0x7f : b == '\n' || b == '\r' || b == '\t';
  });
}

bool IsWebPage(std::string_view text) {
  std::string start(text.substr(0, 16));
  std::transform(start.begin(), start.end(), start.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  for (const char* tag : {"<!doctype", "<html", "<head", "<?xml"}) {
    if (start.starts_with(tag)) return true;
  }
  return false;
}

// "error" or "message" of a small JSON object, which is how servers refuse.
std::optional<std::string> ServerError(std::string_view text) {
  if (!text.starts_with('{') || text.size() >= kHeadBytes) return std::nullopt;
  const auto json = ParseJson(text, "");
  if (!json.ok()) return std::nullopt;
  for (const char* key : {"error", "message", "detail"}) {
    const Json* value = JsonFind(*json, key);
    if (value != nullptr && value->is_string()) {
      return value->get<std::string>();
    }
  }
  return std::nullopt;
}

// The name of the first file in a ZIP archive.
std::string FirstZipEntry(ByteSpan head) {
  ByteReader reader(head);
  reader.Take(26);
  const std::uint16_t name_bytes = reader.Read<std::uint16_t>();
  reader.Read<std::uint16_t>();  // length of the extra field
  const ByteSpan name = reader.Take(name_bytes);
  return reader.ok() ? std::string(AsText(name)) : std::string();
}

constexpr char kPyTorch[] =
    "this is a PyTorch checkpoint, which can run code when read and is not "
    "supported; get the model as safetensors or GGUF";

std::optional<std::string> ZipKind(ByteSpan head) {
  if (!AsText(head).starts_with("PK\x03\x04")) return std::nullopt;
  const std::string entry = FirstZipEntry(head);
  if (entry.ends_with("data.pkl") ||
      entry.ends_with(".data/serialization_id") ||
      entry.find("/data/") != std::string::npos) {
    return kPyTorch;
  }
  return "this is a ZIP archive" +
         (entry.empty() ? std::string() : " that holds " + Quoted(entry)) +
         "; unpack it with unzip";
}

// llama2.c checkpoints have no magic: seven small integers, of which the model
// width is a multiple of the head count.
bool LooksLikeLlama2c(ByteSpan bytes) {
  ByteReader reader(bytes);
  std::int32_t fields[7];
  for (std::int32_t& field : fields) field = reader.Read<std::int32_t>();
  if (!reader.ok()) return false;
  const auto [dim, hidden, layers, heads, kv_heads, vocab, context] = fields;
  return dim > 0 && dim <= 1 << 16 && hidden > 0 && hidden <= 1 << 18 &&
         layers > 0 && layers <= 512 && heads > 0 && dim % heads == 0 &&
         kv_heads > 0 && kv_heads <= heads && vocab != 0 &&
         vocab > -(1 << 20) && vocab < 1 << 20 && context > 0 &&
         context <= 1 << 22;
}

// Kinds of text that are whole files of their own.
std::optional<std::string> TextKind(std::string_view head) {
  const std::string_view text = TextStart(head);
  if (!IsText(text)) return std::nullopt;
  if (text.starts_with("FROM ") || text.starts_with("# Modelfile")) {
    return "this is an Ollama Modelfile; give the model file that its FROM "
           "line names";
  }
  if (text.starts_with('{') || text.starts_with('[')) {
    return "this is JSON text; give the folder that holds it with its weights";
  }
  return "this is text: " + Quoted(text);
}

}  // namespace

std::optional<std::string> DownloadAccident(ByteSpan bytes) {
  if (bytes.empty()) return "the file is empty; download it again";
  const ByteSpan head = bytes.first(std::min(bytes.size(), kHeadBytes));
  const std::string_view text = AsText(head);
  if (text.starts_with("version https://git-lfs.github.com/spec/")) {
    return "this is a git-lfs pointer, not the file itself; run git lfs pull "
           "where it was cloned, or download it again";
  }
  const std::string_view start = TextStart(text);
  if (IsWebPage(start)) {
    return "this is a web page, not the file; the link leads to a page about "
           "it or to an error: download it again";
  }
  if (bytes.size() < kHeadBytes) {
    if (const auto error = ServerError(start)) {
      return "this is a server's answer, not the file: " + Quoted(*error);
    }
  }
  for (const Magic& magic : kPacked) {
    if (Matches(text, magic)) return std::string("this is ") + magic.kind;
  }
  if (auto zip = ZipKind(head)) return zip;
  const bool zeros = std::all_of(head.begin(), head.end(),
                                 [](std::byte b) { return b == std::byte{0}; });
  if (zeros) {
    return "the file begins with " + std::to_string(head.size()) +
           " zeros: its download was not finished; download it again";
  }
  return std::nullopt;
}

std::optional<std::string> ForeignKind(ByteSpan bytes) {
  if (auto accident = DownloadAccident(bytes)) return accident;
  const ByteSpan head = bytes.first(std::min(bytes.size(), kHeadBytes));
  const std::string_view text = AsText(head);
  for (const Magic& magic : kForeign) {
    if (Matches(text, magic)) return std::string("this is ") + magic.kind;
  }
  // A pickle, versions 2 to 5.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
    return kPyTorch;
  }
  if (head.size() > 9 && head[8] == std::byte{'{'}) {
    return "this is a lone safetensors file; give the directory that holds it "
           "with its config.json";
  }
  if (text.starts_with("24ka") || LooksLikeLlama2c(head)) {
    return "this is a llama2.c checkpoint; convert it to GGUF";
  }
  return TextKind(text);
}

Result<void> RefuseDownloadAccident(ByteSpan bytes, const std::string& path) {
  const auto accident = DownloadAccident(bytes);
  if (!accident.has_value()) return {};
  return {Code::kCorrupt, path + ": " + *accident};
}

std::string UnfinishedDownloadNote(std::string_view path) {
  for (const std::string_view ending :
       {".part", ".incomplete", ".aria2", ".crdownload", ".download", ".tmp",
        ".partial"}) {
    if (path.ends_with(ending)) {
      return "; the ending " + Quoted(ending) +
             " says that its download is not finished";
    }
  }
  return "";
}

}  // namespace hearth
