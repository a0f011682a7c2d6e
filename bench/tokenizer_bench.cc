// Times the tokenizers, in processor time of the one thread (the machine may be
// shared). Workloads:
//   open     tokenizer.json parsed and built
//   reopen   its compiled form mapped and checked (the second launch)
//   encode   the text files, as one text each, no special tokens
//   cold     the same with a tokenizer that has seen nothing yet
//   decode   the ids of `encode`
//
//   tokenizer_bench TOKENIZER.json|VOCABULARY.gguf TEXT...
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "testing/gguf_vocab_file.h"
#include "text/bpe/compiled_vocab.h"
#include "text/gguf/gguf_vocab.h"
#include "text/json/tokenizer_json.h"

namespace {

using hearth::Tokenizer;

template <typename Work>
double Seconds(Work work) {
  const auto now = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) +
           1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

template <typename Work>
double BestSeconds(int rounds, Work work) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) best = std::min(best, Seconds(work));
  return best;
}

int Fail(const hearth::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int Run(const std::string& path, const std::vector<std::string>& texts) {
  const auto json = hearth::ReadTextFile(path);
  if (!json.ok()) return Fail(json.error());
  const auto open = [&]() -> hearth::Result<std::unique_ptr<Tokenizer>> {
    if (!path.ends_with(".gguf")) {
      return hearth::LoadTokenizerJson(*json, "", path);
    }
    return hearth::MakeGgufTokenizer(
        hearth::ReadGgufVocabForTest(hearth::AsBytes(*json), path));
  };
  const auto made = open();
  if (!made.ok()) return Fail(made.error());
  const Tokenizer& tokenizer = **made;
  std::printf("%s: %s, %d ids\n", path.c_str(),
              std::string(tokenizer.kind()).c_str(), tokenizer.vocab_size());
  const double opened = BestSeconds(9, [&] { (void)open(); });
  std::printf("open    %8.2f ms\n", 1e3 * opened);

  const hearth::Digest source = hearth::TokenizerSource(*json, "");
  const std::string file =
      (std::filesystem::temp_directory_path() / "hearth-bench.htok").string();
  const auto compiled = hearth::CompileTokenizer(tokenizer, source);
  if (!compiled.ok()) return Fail(compiled.error());
  if (auto done = hearth::WriteFileAtomically(file, *compiled); !done.ok()) {
    return Fail(done.error());
  }
  std::printf("reopen  %8.2f ms  (%zu bytes)\n",
              1e3 * BestSeconds(9,
                                [&] {
                                  const auto map =
                                      hearth::MappedFile::Open(file);
                                  (void)hearth::FromCompiled(map->bytes(),
                                                             source, file);
                                }),
              compiled->size());
  std::printf(
      "source  %8.2f ms  (SHA-256 of the source)\n",
      1e3 * BestSeconds(3, [&] { (void)hearth::TokenizerSource(*json, ""); }));
  std::filesystem::remove(file);

  double bytes = 0;
  std::size_t n_ids = 0;
  std::vector<std::vector<std::int32_t>> ids(texts.size());
  const auto encode_all = [&](const Tokenizer& with) {
    n_ids = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto one = with.Encode(texts[i], {.add_special = false});
      if (one.ok()) ids[i] = std::move(*one);
      n_ids += ids[i].size();
    }
  };
  for (const std::string& text : texts)
    bytes += static_cast<double>(text.size());
  const auto fresh = hearth::FromCompiled(*compiled, source, file);
  const double cold = Seconds([&] { encode_all(**fresh); });
  const double warm = BestSeconds(5, [&] { encode_all(tokenizer); });
  const double decode = BestSeconds(5, [&] {
    for (const auto& one : ids) (void)tokenizer.Decode(one);
  });
  std::printf("encode  %8.2f MB/s  (%.2f MB, %zu ids)\n", bytes / warm / 1e6,
              bytes / 1e6, n_ids);
  std::printf("cold    %8.2f MB/s\n", bytes / cold / 1e6);
  std::printf("decode  %8.2f MB/s\n", bytes / decode / 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(
        stderr,
        "usage: tokenizer_bench TOKENIZER.json|VOCABULARY.gguf TEXT...\n");
    return 2;
  }
  std::vector<std::string> texts;
  for (int i = 2; i < argc; ++i) {
    auto text = hearth::ReadTextFile(argv[i]);
    if (!text.ok()) return Fail(text.error());
    texts.push_back(std::move(*text));
  }
  return Run(argv[1], texts);
}
