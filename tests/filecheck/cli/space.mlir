// The search space of a program: what depends on the machine's vectors and caches is left open.
// RUN: strata space %s --threads 1 | filecheck %s --check-prefix=LIST
// RUN: strata space %s --threads 1 --filter written | filecheck %s --check-prefix=ONE
// RUN: strata space %s --threads 1 --show 0 | filecheck %s --check-prefix=OPEN
// RUN: strata space %s --threads 1 --script 0 | filecheck %s --check-prefix=DECIDED
// RUN: strata space %s --threads 1 --diff 0 1 | filecheck %s --check-prefix=DIFF
// RUN: strata space %s --threads 1 --diff 0 0 | filecheck %s --check-prefix=SAME
// RUN: strata space %s --threads 1 --sample 3 --filter gebp | filecheck %s --check-prefix=SAMPLE
// RUN: strata space %s --threads 1 --dropped | filecheck %s --check-prefix=DROPPED
// RUN: not strata space %s --show 77 2>&1 | filecheck %s --check-prefix=NOWHERE

// LIST:      matmul on 1 thread
// LIST-NEXT: {{[0-9]+}} sketches, {{[0-9]+}} candidates
// LIST-NEXT: sketch 0 ({{[0-9]+}} candidates): C: gebp {{.*}}
// LIST-NEXT:   choice 0, %rows = {{.*}} or {{[0-9]+}} (default {{[0-9]+}}): split C.m{{.*}}
// LIST-NEXT:   choice 1, %vectors = {{.*}}: split C.n{{.*}}
// LIST:      sketch {{[0-9]+}} (1 candidate): as written
// LIST-NOT:  {{.}}

// ONE:      matmul on 1 thread
// ONE-NEXT: {{[0-9]+}} sketches, {{[0-9]+}} candidates
// ONE-NEXT: sketch {{[0-9]+}} (1 candidate): as written
// ONE-NOT:  {{.}}

// OPEN:     transform.named_sequence @schedule
// OPEN-NOT: decision
// OPEN:     %rows = sched.sample_categorical [{{[0-9, ]+}}]{{$}}
// OPEN:     sched.get_block %f "C"
// OPEN-NOT: decision

// DECIDED: %rows = sched.sample_categorical [{{.*}}] decision {{[0-9]+}}
// DECIDED: %vectors = sched.sample_categorical [{{.*}}] decision {{[0-9]+}}

// DIFF:      --- 0 (C: gebp {{.*}})
// DIFF-NEXT: +++ 1 (C: gebp {{.*}})
// DIFF-NEXT: @@ -{{[0-9,]+}} +{{[0-9,]+}} @@
// DIFF:      +    {{.*}} = sched.pack %C

// SAME: no difference

// SAMPLE-COUNT-3: {{[0-9]+:[0-9,]+}} (C: gebp {{.*}}): %rows = {{[0-9]+}}, {{.*}}; {{(feasible|infeasible, .*: .*)}}
// SAMPLE-NOT:     {{.}}

// DROPPED: no alternative was refused

// NOWHERE: strata: error: there is no sketch 77 (there are 0 to {{[0-9]+}})

func.func @matmul(%A: tensor<96x128xf32>, %B: tensor<128x80xf32>) -> tensor<96x80xf32> {
  %C = te.compute "C" [m = 96, n = 80, reduce k = 128] combine [add]
      (%a = %A[m, k] : tensor<96x128xf32>, %b = %B[k, n] : tensor<128x80xf32>) -> tensor<96x80xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<96x80xf32>
}
