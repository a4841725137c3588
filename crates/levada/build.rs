// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Networks are shared objects that are loaded later and find the runtime in this executable, so it
//! shows them all of its interface.

fn main() {
    // C programs that are loaded into a host use the paper's names, too (levada/srpc.h).
    for names in ["lvd_*", "pb_*", "stream_*", "srpc_*"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
    }
    // Loaded objects call these functions as this executable defines them (levada-sys, ends.c): all that end the
    // process, replace its program, or send it a signal.
    let ends = "exit quick_exit _exit _Exit abort raise pthread_kill kill syscall alarm ualarm setitimer timer_create \
                fork system popen posix_spawn posix_spawnp execve execv execvpe execvp fexecve execveat execl execlp \
                execle";
    for name in ends.split_whitespace() {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={name}");
    }
    let built = std::env::var("DEP_LEVADA_ROOT").expect("levada-sys says where it built");
    println!("cargo:rustc-env=LEVADA_STATIC_LIBRARY={built}/lib/liblevada.a");
    println!("cargo:rerun-if-changed=build.rs");
}
