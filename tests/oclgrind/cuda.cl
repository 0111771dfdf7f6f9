// CUDA C++ as far as kernels use it, for the OpenCL C that translation.py makes of their text.
#pragma OPENCL FP_CONTRACT OFF
#define overloaded __attribute__((overloadable))
#define __global__ kernel
#define __constant__ constant
#define __shared__ local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)
#define __syncthreads() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define __int_as_float as_float
#define __fadd_rn(a, b) ((a) + (b))
#define __fsub_rn(a, b) ((a) - (b))
#define __fmul_rn(a, b) ((a) * (b))
#define __dadd_rn __fadd_rn
#define __dsub_rn __fsub_rn
#define __dmul_rn __fmul_rn
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

typedef struct { char x; } char1;
typedef struct { char x, y, z; } packed_char3;
typedef struct { short x, y, z; } packed_short3;
typedef struct { int x, y, z; } packed_int3;
typedef struct { float x, y, z; } packed_float3;

// f16 and bf16 in memory: kernels convert them, and compute in float.
typedef struct { ushort bits; } __half;
typedef struct { ushort bits; } __nv_bfloat16;
typedef struct __attribute__((aligned(4))) { __half x, y; } __half2;
typedef struct __attribute__((aligned(4))) { __nv_bfloat16 x, y; } __nv_bfloat162;
float overloaded to_float(__half a) { return vload_half(0, (const half*)&a.bits); }
float overloaded to_float(__nv_bfloat16 a) { return as_float((uint)a.bits << 16); }
__half overloaded to__half(float a) {
  __half b;
  vstore_half_rte(a, 0, (half*)&b.bits);
  return b;
}
__nv_bfloat16 overloaded to__nv_bfloat16(float a) {
  const uint word = as_uint(a);
  const __nv_bfloat16 b = {a != a ? 0x7fc0 : (word + 0x7fff + (word >> 16 & 1)) >> 16};
  return b;
}
float odd(double a) {  // rounded to odd, so that rounding again is rounding once
  const float near = a;
  return near != near || isinf(near) || near == a ? near : as_float(as_uint(near) - (fabs((double)near) > fabs(a)) | 1);
}
#define NUMBER(type) \
  __half overloaded to__half(type a) { return to__half(odd(a)); } \
  __nv_bfloat16 overloaded to__nv_bfloat16(type a) { return to__nv_bfloat16(odd(a)); }
NUMBER(bool) NUMBER(char) NUMBER(uchar) NUMBER(short) NUMBER(ushort) NUMBER(int) NUMBER(uint) NUMBER(long) NUMBER(ulong)
NUMBER(double)

// What threads hand to each other goes through global memory, three words a thread, so that the barriers around it order
// no access to shared memory: a missing barrier of the text stays a race.
#define EXCHANGE() barrier(CLK_GLOBAL_MEM_FENCE)
uint thread_of_block() {
  return get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
}
global ulong* words_of(global ulong* scratch, uint thread) {
  const uint block = get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
  return scratch + 3 * (block * get_local_size(0) * get_local_size(1) * get_local_size(2) + thread);
}

// Shuffles: the threads that take part write what they have, then read what others have.
#define SHUFFLE(type) \
  type overloaded shuffled(global ulong* scratch, bool takes_part, type value, int distance) { \
    if (takes_part) *(global type*)words_of(scratch, thread_of_block()) = value; \
    EXCHANGE(); \
    if (takes_part) value = *(global type*)words_of(scratch, thread_of_block() ^ distance); \
    EXCHANGE(); \
    return value; \
  }
SHUFFLE(float) SHUFFLE(double) SHUFFLE(int) SHUFFLE(uint) SHUFFLE(long)

// Asynchronous copies: done at the wait for their group, as late as a GPU may do them.
typedef struct {
  int count, group, bytes[256], groups[256];
  local void* to[256];
  global const void* from[256];
} Copies;
void add_copy(Copies* copies, int bytes, local void* to, global const void* from) {
  copies->bytes[copies->count] = bytes;
  copies->to[copies->count] = to;
  copies->groups[copies->count] = copies->group;
  copies->from[copies->count++] = from;
}
void finish_copies(Copies* copies, int before) { // those of the groups below a number; their order stays
  int left = 0;
  for (int n = 0; n < copies->count; ++n) {
    local void* to = copies->to[n];
    if (copies->groups[n] >= before) {
      copies->bytes[left] = copies->bytes[n], copies->to[left] = to;
      copies->groups[left] = copies->groups[n], copies->from[left++] = copies->from[n];
      continue;
    }
    global const void* from = copies->from[n];
    if (copies->bytes[n] == 4) *(local uint*)to = *(global const uint*)from;
    if (copies->bytes[n] == 8) *(local uint2*)to = *(global const uint2*)from;
    if (copies->bytes[n] == 16) *(local uint4*)to = *(global const uint4*)from;
  }
  copies->count = left;
}
#define copy_async(bytes, to, from) add_copy(&copies, bytes, to, from)
#define commit_copies() ++copies.group
#define wait_for_groups(in_flight) finish_copies(&copies, copies.group - in_flight)
#define wait_for_copies() finish_copies(&copies, ++copies.group)

// MMA tiles, in the layouts of NVIDIA's PTX ISA; each thread hands its part to the others of its warp.
#define FRAGMENT(type, registers) typedef struct { type at[registers]; } Fragment_##type##_##registers;
#define LOADS(type, registers) \
  FRAGMENT(type, registers) \
  Fragment_##type##_##registers loaded_##type##_##registers(global ulong* scratch, local void* row, bool transposed) { \
    const uint lane = thread_of_block() % 32; \
    global ulong* warp = words_of(scratch, thread_of_block() - lane); \
    if (lane < 8 * registers) { /* a thread reads the row that it has the address of */ \
      warp[3 * lane] = ((local ulong*)row)[0]; \
      warp[3 * lane + 1] = ((local ulong*)row)[1]; \
    } \
    EXCHANGE(); \
    Fragment_##type##_##registers to; \
    for (int matrix = 0; matrix < registers; ++matrix) { \
      global ulong* rows = warp + 3 * 8 * matrix; \
      if (!transposed) *(uint*)&to.at[matrix] = ((global uint*)(rows + 3 * (lane / 4)))[lane % 4]; \
      for (int second = 0; transposed && second < 2; ++second) \
        ((ushort*)&to.at[matrix])[second] = ((global ushort*)(rows + 3 * (lane % 4 * 2 + second)))[lane / 4]; \
    } \
    EXCHANGE(); \
    return to; \
  }
#define PRODUCT(type, each) \
  LOADS(type, 2) \
  LOADS(type, 4) \
  Fragment_float2_2 overloaded multiplied( \
      global ulong* scratch, Fragment_##type##_4 a, Fragment_##type##_2 b, Fragment_float2_2 c) { \
    const uint lane = thread_of_block() % 32; \
    global type* warp = (global type*)words_of(scratch, thread_of_block() - lane); \
    for (int n = 0; n < 4; ++n) warp[6 * lane + n] = a.at[n]; \
    for (int n = 0; n < 2; ++n) warp[6 * lane + 4 + n] = b.at[n]; \
    EXCHANGE(); \
    for (int row = 0; row < 2; ++row) \
      for (int column = 0; column < 2; ++column) { \
        float sum = column ? c.at[row].y : c.at[row].x; \
        for (int k = 0; k < 8 * each; ++k) { \
          const int part = k / (4 * each), owner = k % (4 * each) / each; \
          sum += factor(warp[6 * (lane / 4 * 4 + owner) + row + 2 * part], k % each) * \
                 factor(warp[6 * ((lane % 4 * 2 + column) * 4 + owner) + 4 + part], k % each); \
        } \
        if (column) c.at[row].y = sum; \
        else c.at[row].x = sum; \
      } \
    EXCHANGE(); \
    return c; \
  }
float overloaded factor(__half2 pair, int number) { return to_float(number ? pair.y : pair.x); }
float overloaded factor(__nv_bfloat162 pair, int number) { return to_float(number ? pair.y : pair.x); }
float overloaded factor(float a, int number) { return as_float(as_uint(a) & 0xffffe000); }  // tf32
FRAGMENT(float2, 2)
PRODUCT(__half2, 2)
PRODUCT(__nv_bfloat162, 2)
PRODUCT(float, 1)
#define multiply_add(a, b, c) multiplied(scratch, a, b, c)

float narrowed_exp2(float x) { return exp2(x); }
