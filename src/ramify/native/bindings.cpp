// The Python module: arrays in, arrays out, the interpreter lock released in between.
//
// Every binding checks sizes, index ranges and names, so that kernels can trust what they are given.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_sparse_rows(nb::module_ &m);
void bind_terms(nb::module_ &m);
void bind_csv(nb::module_ &m);
void bind_decisions(nb::module_ &m);
void bind_bayes(nb::module_ &m);
void bind_linear(nb::module_ &m);
void bind_structured_svm(nb::module_ &m);
void bind_boosting(nb::module_ &m);

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // structs in module-level caches live until the process ends
  m.doc() = "Ramify's compiled kernels, and the structs of arrays that they take.";
  bind_sparse_rows(m);  // first: others are made of its structs
  bind_terms(m);
  bind_csv(m);
  bind_decisions(m);
  bind_bayes(m);
  bind_linear(m);
  bind_structured_svm(m);
  bind_boosting(m);
}
