// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds runtime/ through its own CMake project and links the static library whole: networks that
//! are loaded later resolve `lvd_*` from the executable.

use std::path::PathBuf;

fn main() {
    let runtime = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../runtime");
    for part in [
        "include",
        "src",
        "platform",
        "mcapi",
        "remote",
        "CMakeLists.txt",
    ] {
        println!("cargo:rerun-if-changed={}", runtime.join(part).display());
    }
    // The runtime is what everything else waits for: always optimised, whatever the tools are.
    let built = cmake::Config::new(&runtime)
        .profile("Release")
        .define("LVD_TESTS", "OFF")
        .define("CMAKE_INSTALL_LIBDIR", "lib")
        .build();
    println!("cargo:rustc-link-search=native={}/lib", built.display());
    // What is on the runtime comes before it on the linker's line.
    println!("cargo:rustc-link-lib=static=levada-mcapi");
    println!("cargo:rustc-link-lib=static:+whole-archive=levada");
    println!("cargo:root={}", built.display());
    println!("cargo:include={}", runtime.join("include").display());
    cc::Build::new()
        .file("src/external.c")
        .file("src/served.c")
        .file("src/ends.c")
        .include(runtime.join("include"))
        .include(runtime.join("src")) // what is said of the paper's tasks: task_message.h
        .define("_GNU_SOURCE", None)
        .std("c17")
        .warnings(true)
        .extra_warnings(true)
        .opt_level(2)
        .compile("levada_sys_external");
    println!("cargo:rerun-if-changed=src/external.c");
    println!("cargo:rerun-if-changed=src/served.c");
    println!("cargo:rerun-if-changed=src/ends.c");
}
