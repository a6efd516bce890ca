// Label sets of documents and their ancestors. rows: documents × nodes; parents: nodes × nodes.
#pragma once
#include "sparse_rows.h"

namespace ramify {

// Adds every ancestor of every node of every row; nodes of a row come out sorted and once each.
PatternRows close_upward(const Pattern &rows, const Pattern &parents);

// Keeps the nodes of each row that have no child in the row; rows must be closed upward.
PatternRows keep_most_specific(const Pattern &rows, const Pattern &parents);

// Keeps the nodes of each row that have no parent in the row; rows need not be closed.
PatternRows keep_most_general(const Pattern &rows, const Pattern &parents);

}  // namespace ramify
