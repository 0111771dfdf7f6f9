// RUN: strata-opt %s -p 'compute-at{block=T at=D.m}' | filecheck %s --check-prefix=COMPUTE
// RUN: strata-opt %s -p 'reverse-compute-at{block=D at=T.m}' | filecheck %s --check-prefix=REVERSE
// RUN: strata-opt %s -p 'tile{block=T axes=m,n sizes=3,4},fuse{block=D at=T.n.0}' | filecheck %s --check-prefix=FUSE
// RUN: strata-opt %s -p 'inline{block=T}' | filecheck %s --check-prefix=INLINE
// RUN: strata-opt %s -p 'reverse-inline{block=D}' | filecheck %s --check-prefix=INTO

// The passes that say where a block is computed.
// PAYLOAD: producer_consumer

// COMPUTE-LABEL: func.func @f(
// COMPUTE: loop.for "m" {{.*}} = 6 {
// COMPUTE: loop.alloc "T" : memref<1x8xf32>
// COMPUTE: loop.for "T.n" {{.*}} = 8 {
// COMPUTE: loop.block "T"
// COMPUTE: loop.for "n" {{.*}} = 8 {
// COMPUTE: loop.block "D"
// COMPUTE-NOT: loop.for

// REVERSE-LABEL: func.func @f(
// REVERSE: loop.for "m" {{.*}} = 6 {
// REVERSE: loop.alloc "T" : memref<1x8xf32>
// REVERSE: loop.for "n" {{.*}} = 8 {
// REVERSE: loop.block "T"
// REVERSE: loop.for "D.n" {{.*}} = 8 {
// REVERSE: loop.block "D"
// REVERSE-NOT: loop.for

// FUSE-LABEL: func.func @f(
// FUSE: loop.for "m.0" {{.*}} = 2 {
// FUSE: loop.for "n.0" {{.*}} = 2 {
// FUSE: loop.alloc "T" : memref<3x4xf32>
// FUSE: loop.for "m.1" {{.*}} = 3 {
// FUSE: loop.for "n.1" {{.*}} = 4 {
// FUSE: loop.block "T"
// FUSE: loop.for "m" {{.*}} = 3 {
// FUSE: loop.for "n" {{.*}} = 4 {
// FUSE: loop.block "D"
// FUSE-NOT: loop.for

// INLINE-LABEL: func.func @f(
// INLINE: loop.for "m" {{.*}} = 6 {
// INLINE: loop.for "n" {{.*}} = 8 {
// INLINE: loop.block "D"
// INLINE-NOT: loop.for

// INTO-LABEL: func.func @f(
// INTO: loop.for "m" {{.*}} = 6 {
// INTO: loop.for "n" {{.*}} = 8 {
// INTO: loop.block "D"
// INTO-NOT: loop.for
