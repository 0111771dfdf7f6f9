// RUN: strata-opt %s -p 'decompose-reduction{block=C loop=m}' | filecheck %s --check-prefix=INIT
// RUN: strata-opt %s -p 'split{block=C loop=k factors=2,2},rfactor{block=C loop=k.0}' | filecheck %s --check-prefix=FACTOR

// The passes over reductions.
// PAYLOAD: matmul_doubled

// INIT-LABEL: func.func @f(
// INIT: loop.alloc "C" : memref<6x8xf32>
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.block "C.init"
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.for "k" {{.*}} = 4 {
// INIT: loop.block "C"
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.block "D"
// INIT-NOT: loop.for

// FACTOR-LABEL: func.func @f(
// FACTOR: loop.alloc "C" : memref<6x8xf32>
// FACTOR: loop.for "m" {{.*}} = 6 {
// FACTOR: loop.for "n" {{.*}} = 8 {
// FACTOR: loop.alloc "C.rf" : memref<2x6x8xf32>
// FACTOR: loop.for "k.0" {{.*}} = 2 {
// FACTOR: loop.for "k.1" {{.*}} = 2 {
// FACTOR: loop.block "C.rf"
// FACTOR: loop.for "k.0" {{.*}} = 2 {
// FACTOR: loop.block "C"
// FACTOR: loop.for "m" {{.*}} = 6 {
// FACTOR: loop.for "n" {{.*}} = 8 {
// FACTOR: loop.block "D"
// FACTOR-NOT: loop.for
