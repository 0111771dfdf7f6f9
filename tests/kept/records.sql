PRAGMA application_id = 1400140404;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE programs (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "programs" VALUES('25657236747d6ab6dcafe46d7a8cdf533086b9087f8151267f5c2a6a80a6df99','builtin.module {
  func.func @program(%A: memref<8x6xf32>, %B: memref<6x4xf32>, %C: memref<8x4xf32>) attributes {outputs = 1 : i64} {
    %T = loop.alloc "T" : memref<8x4xf32>
    loop.for "m" %m = 8 {
      loop.for "n" %n = 4 {
        loop.for "k" %k = 6 {
          loop.block "T" [m = 8 at %m, n = 4 at %n, reduce k = 6 at %k] combine [add]
              (%a = %A[m, k] : memref<8x6xf32>, %b = %B[k, n] : memref<6x4xf32>) -> (%T[m, n] : memref<8x4xf32>) origin "T"[m, n, k] {
            %0 = arith.mulf %a, %b : f32
            loop.yield %0 : f32
          }
        }
      }
    }
    loop.for "m" %m_1 = 8 {
      loop.for "n" %n_1 = 4 {
        loop.block "C" [m = 8 at %m_1, n = 4 at %n_1]
            (%t = %T[m, n] : memref<8x4xf32>) -> (%C[m, n] : memref<8x4xf32>) origin "C"[m, n] {
          %0 = arith.constant 5.000000e-01 : f32
          %1 = arith.cmpf ogt, %t, %0 : f32
          %2 = math.exp %t : f32
          %3 = arith.constant 2.500000e-01 : f32
          %4 = arith.mulf %t, %3 : f32
          %5 = arith.select %1, %2, %4 : f32
          loop.yield %5 : f32
        }
      }
    }
    func.return
  }
}');
CREATE TABLE records (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        uuid TEXT NOT NULL UNIQUE,
        program TEXT NOT NULL REFERENCES programs (hash),
        conditions TEXT NOT NULL,
        script TEXT NOT NULL,
        fields TEXT NOT NULL
    );
INSERT INTO "records" VALUES(1,'0f6f6f6e-0000-4000-8000-000000000001','25657236747d6ab6dcafe46d7a8cdf533086b9087f8151267f5c2a6a80a6df99','{"machine": "lab", "policy": "contract", "threads": 1, "timing": "warm"}','builtin.module {
  transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
    %T = sched.get_block %f "T"
    %m, %n, %k = sched.get_loops %T : !sched.loop, !sched.loop, !sched.loop
    %n.0, %n.1 = sched.split %n by [-1, 2] : !sched.loop, !sched.loop
    sched.vectorize %n.1
    %m.0, %m.1 = sched.split %m by [-1, 3] : !sched.loop, !sched.loop
    transform.yield
  }
}','{"outcome": {"kind": "measured", "seconds": [1e-06], "rates": [1000000000.0], "reason": "", "build_seconds": 0.0, "disturbance": null}, "candidate": null, "predicted": null, "name": "f", "seed": 0, "run": "0", "created": "2026-11-25T00:00:00.000000+00:00", "versions": {"strata": "0.1.0"}}');
CREATE TABLE whole_programs (hash TEXT PRIMARY KEY, fields TEXT NOT NULL);
CREATE INDEX records_by_key ON records (program, conditions);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('records',1);
COMMIT;
