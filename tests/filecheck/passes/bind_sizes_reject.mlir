// RUN: not strata-opt %s -p bind-sizes 2>&1 | filecheck %s --check-prefix NONE
// RUN: not strata-opt %s -p 'bind-sizes{values="S=6"}' 2>&1 | filecheck %s --check-prefix RANGE
// RUN: not strata-opt %s -p 'bind-sizes{values="S=5"}' 2>&1 | filecheck %s --check-prefix RELATION
// RUN: not strata-opt %s -p 'bind-sizes{values="S=2, T=2"}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not strata-opt %s -p 'bind-sizes{values="S:2"}' 2>&1 | filecheck %s --check-prefix FORM
// RUN: not strata-opt %s -p 'bind-sizes{values="S=2, S=3"}' 2>&1 | filecheck %s --check-prefix TWICE

// NONE: error: the size 'S' of @f has no value
// RANGE: error: the size 'S' of @f is 6; it is from 1 to 5
// RELATION: error: @f takes sizes of which -S + 4 >= 0 holds, not S = 5
// NAME: error: there is no size 'T'
// FORM: error: bind-sizes: 'S:2' is no size with a value, such as S=100
// TWICE: error: bind-sizes: the size 'S' has two values
func.func @f(%X: tensor<5xf32> {te.dims = #te.dims<[S]>}) -> tensor<5xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 5 where (-S + 4 >= 0)>} {
  func.return %X : tensor<5xf32>
}
