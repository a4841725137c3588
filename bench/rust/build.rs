// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `fork` has the leaves and the problems of all contenders: the library FORK_KERNELS.

fn main() {
    println!("cargo:rerun-if-env-changed=FORK_KERNELS");
    if let Ok(library) = std::env::var("FORK_KERNELS") {
        println!("cargo:rerun-if-changed={library}");
        println!("cargo:rustc-link-arg-bin=fork={library}");
    }
}
