//! Compiles only if nothing that `tollgate-core` links brings `std` along: `std` has a panic
//! handler of its own, and two in one program are an error. `xtask/src/no_std.rs` compiles it.
#![no_std]

extern crate tollgate_core as _;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

/// `alloc` is allowed; a program that uses it must name an allocator.
struct Nothing;

// SAFETY: it never hands out memory.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
