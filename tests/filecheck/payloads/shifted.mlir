func.func @f(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %A[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}
