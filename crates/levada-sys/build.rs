// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds runtime/ with its CMake project and links all of its static library, since networks that are loaded later
//! resolve `lvd_*` from the executable.

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
    // Optimised in debug builds of the tools, too: the tests' running times depend on it.
    let built = cmake::Config::new(&runtime)
        .profile("Release")
        .define("LVD_TESTS", "OFF")
        .define("CMAKE_INSTALL_LIBDIR", "lib")
        .build();
    println!("cargo:rustc-link-search=native={}/lib", built.display());
    // The linker resolves from left to right: libraries that use the runtime come before it.
    println!("cargo:rustc-link-lib=static=levada-mcapi");
    println!("cargo:rustc-link-lib=static:+whole-archive=levada");
    println!("cargo:root={}", built.display());
    println!("cargo:include={}", runtime.join("include").display());
    cc::Build::new()
        .file("src/external.c")
        .file("src/served.c")
        .file("src/ends.c")
        .include(runtime.join("include"))
        .include(runtime.join("src")) // for ipc/link.h, ipc/task_message.h, stream/stream.h
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
