//! Run the library libnet: an input of floats from stdin, its result to stdout.
//!     rustc --edition=2021 main.rs -L . -C link-arg=-Wl,-rpath,. -o main
use std::alloc::{alloc, dealloc, Layout};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::{stdin, stdout, Read, Write};

#[link(name = "net")]
extern "C" {
    fn net_constants_bytes() -> usize;
    fn net_workspace_bytes(threads: c_int) -> usize;
    fn net_prepare(weights: *const *const c_void, constants: *mut c_void, bytes: usize) -> c_int;
    fn net_run(
        constants: *const c_void,
        inputs: *const *const c_void,
        outputs: *const *mut c_void,
        workspace: *mut c_void,
        workspace_bytes: usize,
        threads: c_int,
    ) -> c_int;
    fn net_message(status: c_int) -> *const c_char;
}

/// Memory aligned to 64 bytes.
struct Memory(*mut u8, Layout);

impl Memory {
    fn new(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes.max(64), 64).unwrap();
        Memory(unsafe { alloc(layout) }, layout)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unsafe { dealloc(self.0, self.1) }
    }
}

fn check(status: c_int) {
    assert!(status == 0, "{}", unsafe { CStr::from_ptr(net_message(status)) }.to_str().unwrap());
}

fn main() {
    const INPUT: usize = 8 * 32; // net.h: NET_INPUT_0_BYTES / 4
    const OUTPUT: usize = 8 * 10; // net.h: NET_OUTPUT_0_BYTES / 4
    let (constants_bytes, workspace_bytes) = unsafe { (net_constants_bytes(), net_workspace_bytes(1)) };
    let (constants, workspace) = (Memory::new(constants_bytes), Memory::new(workspace_bytes));
    check(unsafe { net_prepare(std::ptr::null(), constants.0.cast(), constants_bytes) });
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes).unwrap();
    for example in bytes.chunks_exact(4 * INPUT) {
        let x: Vec<f32> = example.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let mut y = [0f32; OUTPUT];
        let (inputs, outputs) = ([x.as_ptr().cast()], [y.as_mut_ptr().cast()]);
        let workspace = workspace.0.cast();
        check(unsafe { net_run(constants.0.cast(), inputs.as_ptr(), outputs.as_ptr(), workspace, workspace_bytes, 1) });
        let result: Vec<u8> = y.iter().flat_map(|v| v.to_le_bytes()).collect();
        stdout().write_all(&result).unwrap();
    }
}
