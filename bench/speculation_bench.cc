// Times decoding with and without guesses, in processor time of one thread (the
// machine may be shared): best of five answers of 200 tokens, prefill excluded.
//
//   speculation_bench MODEL PROMPT-FILE TEMPERATURE [DRAFT...]
//
// MODEL "-" is the built-in model; DRAFT as for hearth sample --draft.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/engine.h"

namespace {

double Now() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

hearth::Result<void> Time(const std::string& model, const std::string& prompt,
                          double temperature, const std::string& draft) {
  HEARTH_ASSIGN(auto engine,
                hearth::Engine::Open(
                    {.model_path = model, .n_threads = 1, .draft = draft}));
  HEARTH_ASSIGN(const auto ids, engine->codec().Encode(prompt, true));
  double best = 1e9;
  hearth::GenerateReport report;
  for (int round = 0; round < 5; ++round) {
    HEARTH_ASSIGN(auto session, engine->NewSession());
    HEARTH_ASSIGN(const auto sync, session->Sync(ids, nullptr));
    double start = 0;
    HEARTH_ASSIGN(
        report,
        session->Generate(
            {.n_tokens_max = 200,
             .ignore_eos = true,
             .sampling = {.temperature = temperature, .top_p = 0.9, .seed = 5}},
            [&](const hearth::Token&) {
              if (start == 0) start = Now();
              return true;
            }));
    best = std::min(best, Now() - start);
  }
  const double n = static_cast<double>(report.token_ids.size()) - 1;
  const auto& s = report.speculation;
  std::printf("%-40s %8.0f tokens/s", draft.empty() ? "plain" : draft.c_str(),
              n / best);
  if (s.steps > 0) {
    std::printf(", %d of %d guesses right, %.2f tokens a step", s.accepted,
                s.drafted, 1.0 + static_cast<double>(s.accepted) / s.steps);
  }
  std::printf("\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: speculation_bench MODEL PROMPT-FILE TEMPERATURE "
                 "[DRAFT...]\n");
    return 2;
  }
  const std::string model = std::string(argv[1]) == "-" ? "" : argv[1];
  const auto prompt = hearth::ReadTextFile(argv[2]);
  std::vector<std::string> drafts = {""};
  drafts.insert(drafts.end(), argv + 4, argv + argc);
  for (const std::string& draft : drafts) {
    const auto done = prompt.ok()
                          ? Time(model, *prompt, std::atof(argv[3]), draft)
                          : prompt.error();
    if (!done.ok()) {
      std::fprintf(stderr, "%s\n", done.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
