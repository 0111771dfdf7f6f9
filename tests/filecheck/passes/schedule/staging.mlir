// RUN: strata-opt %s -p 'cache-read{block=C buffer=B scope=shared}' | filecheck %s --check-prefixes=ALLOC,READ,REST
// RUN: strata-opt %s -p 'cache-read{block=C buffer=A scope=shared at=C.m}' | filecheck %s --check-prefixes=ALLOC,READAT,REST
// RUN: strata-opt %s -p 'cache-write{block=C scope=local}' | filecheck %s --check-prefixes=ALLOC,WRITE,REST
// RUN: strata-opt %s -p 'cache-write{block=C at=C.m}' | filecheck %s --check-prefixes=ALLOC,WRITEAT,REST
// RUN: strata-opt %s -p 'stage{block=C loop=m buffer=C scope=local}' | filecheck %s --check-prefixes=ALLOC,STAGE,REST
// RUN: strata-opt %s -p 'pack{block=C buffer=B tiles=1,4 order=1,0,2}' | filecheck %s --check-prefixes=ALLOC,PACK,REST
// RUN: strata-opt %s -p 'tile{block=C axes=n sizes=4},reorder{block=C order=n.0,m},pack{block=C buffer=B tiles=1,4 order=1,0,2 at=C.n.0}' | filecheck %s --check-prefixes=ALLOC,PACKAT,REST
// RUN: strata-opt %s -p 'transform-layout{block=C buffer=C by="(i, j) -> (j floordiv 4, i, j mod 4)"}' | filecheck %s --check-prefix=LAYOUT
// RUN: strata-opt %s -p 'fuse{block=D at=C.n},lift-alloc{buffer=C to=C.m}' | filecheck %s --check-prefix=LIFT
// RUN: strata-opt %s -p 'fuse{block=D at=C.n},lift-alloc{buffer=C}' | filecheck %s --check-prefix=LIFTOUT
// RUN: strata-opt %s -p 'set-scope{block=C scope=shared}' | filecheck %s --check-prefixes=SCOPE,REST
// RUN: strata-opt %s -p 'storage-align{block=C dim=0 factor=16 offset=4}' | filecheck %s --check-prefixes=ALIGN,REST
// RUN: strata-opt %s -p 'swizzle{block=C width=4}' | filecheck %s --check-prefixes=ALLOC,SWIZZLE
// RUN: strata-opt %s -p 'fuse{block=D at=C.m},double-buffer{block=C}' | filecheck %s --check-prefix=DOUBLE

// The passes that make copies, and say where buffers live and how their elements lie.
// PAYLOAD: matmul_doubled

// Most begin alike (ALLOC), and leave the nest of D as it was, with nothing behind it (REST).
// ALLOC-LABEL: func.func @f(
// ALLOC: loop.alloc "C" : memref<6x8xf32>

// READ: loop.alloc "B.shared" shared : memref<4x8xf32>
// READ: loop.for "ax0" {{.*}} = 4 {
// READ: loop.for "ax1" {{.*}} = 8 {
// READ: loop.block "B.shared"
// READ: loop.for "m" {{.*}} = 6 {
// READ: loop.for "n" {{.*}} = 8 {
// READ: loop.for "k" {{.*}} = 4 {
// READ: loop.block "C"

// READAT: loop.for "m" {{.*}} = 6 {
// READAT: loop.alloc "A.shared" shared : memref<1x4xf32>
// READAT: loop.for "ax1" {{.*}} = 4 {
// READAT: loop.block "A.shared"
// READAT: loop.for "n" {{.*}} = 8 {
// READAT: loop.for "k" {{.*}} = 4 {
// READAT: loop.block "C"

// WRITE: loop.alloc "C.local" local : memref<6x8xf32>
// WRITE: loop.for "m" {{.*}} = 6 {
// WRITE: loop.for "n" {{.*}} = 8 {
// WRITE: loop.for "k" {{.*}} = 4 {
// WRITE: loop.block "C"
// WRITE: loop.for "ax0" {{.*}} = 6 {
// WRITE: loop.for "ax1" {{.*}} = 8 {
// WRITE: loop.block "C.local"

// WRITEAT: loop.for "m" {{.*}} = 6 {
// WRITEAT: loop.alloc "C.local" local : memref<1x8xf32>
// WRITEAT: loop.for "n" {{.*}} = 8 {
// WRITEAT: loop.for "k" {{.*}} = 4 {
// WRITEAT: loop.block "C"
// WRITEAT: loop.for "ax1" {{.*}} = 8 {
// WRITEAT: loop.block "C.local"

// STAGE: loop.for "m" {{.*}} = 6 {
// STAGE: loop.alloc "C.local" local : memref<1x8xf32>
// STAGE: loop.for "n" {{.*}} = 8 {
// STAGE: loop.for "k" {{.*}} = 4 {
// STAGE: loop.block "C"
// STAGE: loop.for "ax1" {{.*}} = 8 {
// STAGE: loop.block "C.local.out"

// PACK: loop.alloc "B.pack" : memref<2x4x4xf32>
// PACK: loop.for "ax0" {{.*}} = 2 {
// PACK: loop.for "ax1" {{.*}} = 4 {
// PACK: loop.for "ax2" {{.*}} = 4 {
// PACK: loop.block "B.pack"
// PACK: %B.pack[ax0, ax1, ax2]
// PACK: loop.for "m" {{.*}} = 6 {
// PACK: loop.for "n" {{.*}} = 8 {
// PACK: loop.for "k" {{.*}} = 4 {
// PACK: loop.block "C"
// PACK: %B.pack[n floordiv 4, k, n mod 4]

// PACKAT: loop.for "n.0" {{.*}} = 2 {
// PACKAT: loop.alloc "B.pack" : memref<1x4x4xf32>
// PACKAT: loop.for "ax1" {{.*}} = 4 {
// PACKAT: loop.for "ax2" {{.*}} = 4 {
// PACKAT: loop.block "B.pack"
// PACKAT: loop.for "m" {{.*}} = 6 {
// PACKAT: loop.for "n.1" {{.*}} = 4 {
// PACKAT: loop.for "k" {{.*}} = 4 {
// PACKAT: loop.block "C"

// LAYOUT-LABEL: func.func @f(
// LAYOUT: loop.alloc "C" : memref<2x6x4xf32>
// LAYOUT: loop.for "m" {{.*}} = 6 {
// LAYOUT: loop.for "n" {{.*}} = 8 {
// LAYOUT: loop.for "k" {{.*}} = 4 {
// LAYOUT: loop.block "C"
// LAYOUT: %C[n floordiv 4, m, n mod 4]
// LAYOUT: loop.for "m" {{.*}} = 6 {
// LAYOUT: loop.for "n" {{.*}} = 8 {
// LAYOUT: loop.block "D"
// LAYOUT: %C[n floordiv 4, m, n mod 4]
// LAYOUT-NOT: loop.for

// LIFT-LABEL: func.func @f(
// LIFT: loop.for "m" {{.*}} = 6 {
// LIFT: loop.alloc "C" : memref<1x1xf32>
// LIFT: loop.for "n" {{.*}} = 8 {
// LIFT: loop.for "k" {{.*}} = 4 {
// LIFT: loop.block "C"
// LIFT: loop.block "D"
// LIFT-NOT: loop.for

// LIFTOUT-LABEL: func.func @f(
// LIFTOUT: loop.alloc "C" : memref<1x1xf32>
// LIFTOUT: loop.for "m" {{.*}} = 6 {
// LIFTOUT: loop.for "n" {{.*}} = 8 {
// LIFTOUT: loop.for "k" {{.*}} = 4 {
// LIFTOUT: loop.block "C"
// LIFTOUT: loop.block "D"
// LIFTOUT-NOT: loop.for

// SCOPE-LABEL: func.func @f(
// SCOPE: loop.alloc "C" shared : memref<6x8xf32>
// SCOPE: loop.for "m" {{.*}} = 6 {
// SCOPE: loop.for "n" {{.*}} = 8 {
// SCOPE: loop.for "k" {{.*}} = 4 {
// SCOPE: loop.block "C"

// ALIGN-LABEL: func.func @f(
// ALIGN: loop.alloc "C" : memref<6x20xf32>
// ALIGN: loop.for "m" {{.*}} = 6 {
// ALIGN: loop.for "n" {{.*}} = 8 {
// ALIGN: loop.for "k" {{.*}} = 4 {
// ALIGN: loop.block "C"

// SWIZZLE: loop.for "m" {{.*}} = 6 {
// SWIZZLE: loop.for "n" {{.*}} = 8 {
// SWIZZLE: loop.for "k" {{.*}} = 4 {
// SWIZZLE: loop.block "C"
// SWIZZLE: %C[m, (m + n) mod 4 + (n floordiv 4) * 4]
// SWIZZLE: loop.for "m" {{.*}} = 6 {
// SWIZZLE: loop.for "n" {{.*}} = 8 {
// SWIZZLE: loop.block "D"
// SWIZZLE: %C[m, (m + n) mod 4 + (n floordiv 4) * 4]
// SWIZZLE-NOT: loop.for

// DOUBLE-LABEL: func.func @f(
// DOUBLE: loop.alloc "C" : memref<2x1x8xf32>
// DOUBLE: loop.for "m" {{.*}} = 6 {
// DOUBLE: loop.for "n" {{.*}} = 8 {
// DOUBLE: loop.for "k" {{.*}} = 4 {
// DOUBLE: loop.block "C"
// DOUBLE: %C[w.0, 0, n]
// DOUBLE: loop.for "D.n" {{.*}} = 8 {
// DOUBLE: loop.block "D"
// DOUBLE: %C[w.0, 0, n]
// DOUBLE-NOT: loop.for

// REST: loop.for "m" {{.*}} = 6 {
// REST: loop.for "n" {{.*}} = 8 {
// REST: loop.block "D"
// REST-NOT: loop.for
