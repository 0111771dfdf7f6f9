// RUN: strata-opt %s --split-input-file --verify-diagnostics

// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the factors [-1, -1] are not positive with at most one -1}}
  %a, %b = sched.split %l by [-1, -1] : !sched.loop, !sched.loop
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the factors [4, 0] are not positive}}
  %a, %b = sched.split %l by [4, 0] : !sched.loop, !sched.loop
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{0 factors give as many loops, not 2}}
  %a, %b = sched.split %l by [] : !sched.loop, !sched.loop
// -----
// PAYLOAD: script C()
  %t = sched.sample_categorical [2, 4] probabilities [0.5, 0.5]
  // expected-error@+1 {{a layout is either a map or tiles}}
  sched.transform_layout %c "C" by affine_map<(i) -> (i floordiv 2, i mod 2)> tiles [%t]
// -----
// PAYLOAD: script C()
  // expected-error@+1 {{an order belongs to tiles, not to a map}}
  sched.transform_layout %c "C" by affine_map<(i) -> (i floordiv 2, i mod 2)> order [0, 1]
// -----
// PAYLOAD: script C()
  // expected-error@+1 {{the tiles [0] are not all positive}}
  sched.transform_layout %c "C" tiles [0]
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{2 factors give as many loops, not 1}}
  %a = sched.split %l by [4, -1] : !sched.loop
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{unknown tail 'drop' (there are guard, partition, pad)}}
  %a, %b = sched.split %l by [4, -1] tail "drop" : !sched.loop, !sched.loop
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{at least 2 loops are needed, got 1}}
  %a = sched.fuse %l
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{a loop is named twice}}
  sched.reorder %l, %m, %l
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{unknown thread index 'warp'}}
  sched.bind %l to "warp"
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{unknown scope 'disk'}}
  %a = sched.cache_read %c "A" in "disk"
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the tiles [0, 4] are not all positive}}
  %a = sched.pack %c "A" tiles [0, 4]
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the factor 0 is not positive}}
  sched.storage_align %c dim 0 factor 0 offset 1
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the width 6 is not a power of two}}
  sched.swizzle %c width 6
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the distance 0 is not positive}}
  sched.prefetch %l "A" ahead 0
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the stages [-1] are not one number of at least 0 a block}}
  sched.software_pipeline %l stages [-1]
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the decision [4] is not one positive factor a parameter}}
  %a, %b = sched.sample_perfect_tile %l innermost 8 decision [4] : !sched.param, !sched.param
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the innermost factor 16 is above 8}}
  %a, %b = sched.sample_perfect_tile %l innermost 8 decision [4, 16] : !sched.param, !sched.param
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{2 candidates need as many probabilities, not 1}}
  %a = sched.sample_categorical [1, 2] probabilities [1.0]
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{are negative or do not sum to 1}}
  %a = sched.sample_categorical [1, 2] probabilities [0.5, 0.25]
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the decision 2 is not one of 2 positions}}
  %a = sched.sample_categorical [1, 2] probabilities [0.5, 0.5] decision 2
// -----
// PAYLOAD: script C(m, l)
  // expected-error@+1 {{the decision -3 is not a loop's position, -1 or -2}}
  %a = sched.sample_location %c decision -3
// -----
// PAYLOAD: script C(m, l)
  %a, %b = sched.split %l by [4, -1] : !sched.loop, !sched.loop
  // expected-error@+1 {{'sched.vectorize' uses a handle '%l' that 'sched.split' has consumed}}
  sched.vectorize %l
