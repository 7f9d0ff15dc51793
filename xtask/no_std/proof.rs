//! Compiles only if `tollgate-algorithms` and its dependencies do not link `std`: `std` defines a panic
//! handler, and two in one program are an error. Compiled by `xtask/src/no_std.rs`.
#![no_std]

extern crate tollgate_algorithms as _;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

/// `alloc` is allowed, and a program that uses it needs an allocator.
struct NoMemory;

// SAFETY: `alloc` always fails, so there is no memory to misuse.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
