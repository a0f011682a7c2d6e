// The tokens that may come next with their weights, and the filters that leave
// some of them out.
//
// Each filter keeps at least one candidate of those it is given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

struct Distribution {
  struct Candidate {
    float logit;
    std::int32_t id;
    double weight;  // probability x total
  };
  // Empty when nothing may come; one when the choice is greedy.
  std::vector<Candidate> candidates;
  double total = 0;  // of the weights, once SumUp was called

  double Of(std::int32_t id) const;  // its probability
  void SumUp();
};

// Every token with weight exp((logit - best) / temperature) > 0, in the order
// of their ids; the first largest alone at temperature 0. A logit of minus
// infinity or not a number is no candidate, unless there is nothing else.
void Weigh(std::span<const float> logits, double temperature,
           std::vector<Distribution::Candidate>& candidates);

// The likeliest first; equal ones in the order of their ids. The filters below
// want it.
void SortByLogit(std::vector<Distribution::Candidate>& candidates);

// The k likeliest; 0: all.
void KeepTopK(int k, std::vector<Distribution::Candidate>& candidates);
// The fewest that add up to p of the whole.
void KeepTopP(double p, std::vector<Distribution::Candidate>& candidates);
// Those with at least p times the weight of the first.
void KeepMinP(double p, std::vector<Distribution::Candidate>& candidates);
// Of those with at least `threshold` of the whole, the least likely alone
// ("exclude top choices"); the others stay.
void DropTopChoices(double threshold,
                    std::vector<Distribution::Candidate>& candidates);

}  // namespace hearth
