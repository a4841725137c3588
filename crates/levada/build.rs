// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Networks are shared objects that are loaded later and find the runtime in this executable, so it
//! shows them all of its interface.

fn main() {
    // C programs that are loaded into a host use the paper's names, too (levada/srpc.h).
    for names in ["lvd_*", "pb_*", "stream_*", "srpc_*"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
    }
    let built = std::env::var("DEP_LEVADA_ROOT").expect("levada-sys says where it built");
    println!("cargo:rustc-env=LEVADA_STATIC_LIBRARY={built}/lib/liblevada.a");
    println!("cargo:rerun-if-changed=build.rs");
}
