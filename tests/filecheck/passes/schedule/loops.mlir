// RUN: strata-opt %s -p 'tile{block=C axes=m,n sizes=4,3}' | filecheck %s --check-prefixes=ALLOC,TILE,REST
// RUN: strata-opt %s -p 'split{block=C loop=m factors=-1,4}' | filecheck %s --check-prefixes=ALLOC,SPLIT,REST
// RUN: strata-opt %s -p 'split{block=C loop=m factors=-1,4 tail=partition}' | filecheck %s --check-prefixes=ALLOC,TAIL,REST
// RUN: strata-opt %s -p 'partition{block=C loop=m at=4}' | filecheck %s --check-prefixes=ALLOC,PARTITION,REST
// RUN: strata-opt %s -p 'fuse-loops{block=C loops=m,n}' | filecheck %s --check-prefixes=ALLOC,FUSED,REST
// RUN: strata-opt %s -p 'reorder{block=C order=m,k,n}' | filecheck %s --check-prefixes=ALLOC,REORDER,REST
// RUN: strata-opt %s -p 'merge{first=C.m second=D.m},merge{first=C.n second=D.n}' | filecheck %s --check-prefixes=ALLOC,MERGE
// RUN: strata-opt %s -p 'merge{first=C.m second=D.m shift=1}' | filecheck %s --check-prefixes=ALLOC,SHIFT
// RUN: strata-opt %s -p 'merge{first=C.m second=D.m},distribute{block=C loop=m}' | filecheck %s --check-prefixes=ALLOC,DISTRIBUTE,REST
// RUN: strata-opt %s -p 'unroll{block=C loop=k}' | filecheck %s --check-prefixes=ALLOC,UNROLL,REST
// RUN: strata-opt %s -p 'vectorize{block=D loop=n}' | filecheck %s --check-prefixes=ALLOC,VECTORIZE
// RUN: strata-opt %s -p 'vectorize{block=D loop=n width=4}' | filecheck %s --check-prefixes=ALLOC,WIDTH
// RUN: strata-opt %s -p 'parallelize{block=C loop=m}' | filecheck %s --check-prefixes=ALLOC,PARALLEL,REST
// RUN: strata-opt %s -p 'bind-threads{block=C block-x=m thread-x=n}' | filecheck %s --check-prefixes=ALLOC,BIND,REST
// RUN: strata-opt %s -p 'annotate{block=C loop=m key=hint value=4}' | filecheck %s --check-prefixes=ALLOC,ANNOTATE,REST
// RUN: strata-opt %s -p 'prefetch{block=C loop=k buffer=B ahead=2}' | filecheck %s --check-prefixes=ALLOC,PREFETCH,REST
// RUN: strata-opt %s -p 'prefetch{block=C loop=m buffer=A ahead=1 over=k}' | filecheck %s --check-prefix=OVER
// RUN: strata-opt %s -p 'merge{first=C.m second=D.m},software-pipeline{block=C loop=m stages=0,1}' | filecheck %s --check-prefixes=ALLOC,PIPELINE

// The passes over loops. Each is the primitive of its name; a loop is named by a block and its own name.
// PAYLOAD: matmul_doubled

// Most begin alike (ALLOC), and leave the nest of D as it was, with nothing behind it (REST).
// ALLOC-LABEL: func.func @f(
// ALLOC: loop.alloc "C" : memref<6x8xf32>

// TILE: loop.for "m.0" {{.*}} = 2 {
// TILE: loop.for "n.0" {{.*}} = 3 {
// TILE: loop.for "m.1" {{.*}} = 4 {
// TILE: loop.for "n.1" {{.*}} = 3 {
// TILE: loop.for "k" {{.*}} = 4 {
// TILE: loop.block "C"

// SPLIT: loop.for "m.0" {{.*}} = 2 {
// SPLIT: loop.for "m.1" {{.*}} = 4 {
// SPLIT: loop.for "n" {{.*}} = 8 {
// SPLIT: loop.for "k" {{.*}} = 4 {
// SPLIT: loop.block "C"

// TAIL: loop.for "m.head.0" {{.*}} = 1 {
// TAIL: loop.for "m.head.1" {{.*}} = 4 {
// TAIL: loop.for "n" {{.*}} = 8 {
// TAIL: loop.for "k" {{.*}} = 4 {
// TAIL: loop.block "C"
// TAIL: loop.for "m.rest" {{.*}} = 2 {
// TAIL: loop.for "n" {{.*}} = 8 {
// TAIL: loop.for "k" {{.*}} = 4 {
// TAIL: loop.block "C.1"

// PARTITION: loop.for "m.head" {{.*}} = 4 {
// PARTITION: loop.for "n" {{.*}} = 8 {
// PARTITION: loop.for "k" {{.*}} = 4 {
// PARTITION: loop.block "C"
// PARTITION: loop.for "m.rest" {{.*}} = 2 {
// PARTITION: loop.for "n" {{.*}} = 8 {
// PARTITION: loop.for "k" {{.*}} = 4 {
// PARTITION: loop.block "C.1"

// FUSED: loop.for "m_n" {{.*}} = 48 {
// FUSED: loop.for "k" {{.*}} = 4 {
// FUSED: loop.block "C"

// REORDER: loop.for "m" {{.*}} = 6 {
// REORDER: loop.for "k" {{.*}} = 4 {
// REORDER: loop.for "n" {{.*}} = 8 {
// REORDER: loop.block "C"

// MERGE: loop.for "m" {{.*}} = 6 {
// MERGE: loop.for "n" {{.*}} = 8 {
// MERGE: loop.for "k" {{.*}} = 4 {
// MERGE: loop.block "C"
// MERGE: loop.block "D"
// MERGE-NOT: loop.for

// SHIFT: loop.for "m" {{.*}} = 7 {
// SHIFT: loop.for "n" {{.*}} = 8 {
// SHIFT: loop.for "k" {{.*}} = 4 {
// SHIFT: loop.block "C"
// SHIFT: loop.for "n" {{.*}} = 8 {
// SHIFT: loop.block "D"
// SHIFT-NOT: loop.for

// DISTRIBUTE: loop.for "m" {{.*}} = 6 {
// DISTRIBUTE: loop.for "n" {{.*}} = 8 {
// DISTRIBUTE: loop.for "k" {{.*}} = 4 {
// DISTRIBUTE: loop.block "C"

// UNROLL: loop.for "m" {{.*}} = 6 {
// UNROLL: loop.for "n" {{.*}} = 8 {
// UNROLL: loop.for "k" {{.*}} = 4 unrolled {
// UNROLL: loop.block "C"

// VECTORIZE: loop.for "m" {{.*}} = 6 {
// VECTORIZE: loop.for "n" {{.*}} = 8 {
// VECTORIZE: loop.for "k" {{.*}} = 4 {
// VECTORIZE: loop.block "C"
// VECTORIZE: loop.for "m" {{.*}} = 6 {
// VECTORIZE: loop.for "n" {{.*}} = 8 vectorized {
// VECTORIZE: loop.block "D"
// VECTORIZE-NOT: loop.for

// WIDTH: loop.for "m" {{.*}} = 6 {
// WIDTH: loop.for "n" {{.*}} = 8 {
// WIDTH: loop.for "k" {{.*}} = 4 {
// WIDTH: loop.block "C"
// WIDTH: loop.for "m" {{.*}} = 6 {
// WIDTH: loop.for "n.0" {{.*}} = 2 {
// WIDTH: loop.for "n.1" {{.*}} = 4 vectorized {
// WIDTH: loop.block "D"
// WIDTH-NOT: loop.for

// PARALLEL: loop.for "m" {{.*}} = 6 parallel {
// PARALLEL: loop.for "n" {{.*}} = 8 {
// PARALLEL: loop.for "k" {{.*}} = 4 {
// PARALLEL: loop.block "C"

// BIND: loop.for "m" {{.*}} = 6 block_x {
// BIND: loop.for "n" {{.*}} = 8 thread_x {
// BIND: loop.for "k" {{.*}} = 4 {
// BIND: loop.block "C"

// ANNOTATE: loop.for "m" {{.*}} = 6 {
// ANNOTATE: loop.for "n" {{.*}} = 8 {
// ANNOTATE: loop.for "k" {{.*}} = 4 {
// ANNOTATE: loop.block "C"
// ANNOTATE: } attributes {hint = 4 : i64}

// PREFETCH: loop.for "m" {{.*}} = 6 {
// PREFETCH: loop.for "n" {{.*}} = 8 {
// PREFETCH: loop.for "k" {{.*}} = 4 {
// PREFETCH: loop.block "C"
// PREFETCH: } attributes {prefetch = {B = 2 : i64}}

// PIPELINE: loop.for "m" {{.*}} = 7 {
// PIPELINE: loop.for "n" {{.*}} = 8 {
// PIPELINE: loop.for "k" {{.*}} = 4 {
// PIPELINE: loop.block "C"
// PIPELINE: loop.for "n" {{.*}} = 8 {
// PIPELINE: loop.block "D"
// PIPELINE-NOT: loop.for

// OVER-LABEL: func.func @f(
// OVER: loop.for "k" {{.*}} = 4 {
// OVER: loop.block "C"
// OVER: } attributes {prefetch = {A = [1 : i64, "m"]}}
// OVER: loop.for "m" {{.*}} = 6 {

// REST: loop.for "m" {{.*}} = 6 {
// REST: loop.for "n" {{.*}} = 8 {
// REST: loop.block "D"
// REST-NOT: loop.for
