# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ISO C leaves all names but its own to the program: the libraries call no function of another name, but those that
the guide names. Programs of one compiler that have functions of all other names of the C library, linked with the
shared and the static libraries, statically as a whole, and with optimisation over all files, use each interface.
  names.py SOURCE BUILD NM COMPILER PROGRAM_ARGUMENT..."""
import pathlib
import re
import subprocess
import sys

source, build, nm, compiler, *arguments = sys.argv[1:]
source, build = pathlib.Path(source), pathlib.Path(build)
here = build / "tests" / "names" / pathlib.Path(compiler).name
here.mkdir(parents=True, exist_ok=True)

# C17, 7 (what it has as functions); 7.31 reserves str, mem, wcs and a letter besides, of which none is used.
ISO = set("""
assert isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit tolower toupper
localeconv setlocale longjmp signal raise clearerr fclose feof ferror fflush fgetc fgetpos fgets fopen fprintf fputc
fputs fread freopen fscanf fseek fsetpos ftell fwrite getc getchar perror printf putc putchar puts remove rename rewind
scanf setbuf setvbuf snprintf sprintf sscanf tmpfile tmpnam ungetc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf
vsscanf abort abs aligned_alloc at_quick_exit atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv
llabs lldiv malloc mblen mbstowcs mbtowc qsort quick_exit rand realloc srand strtod strtof strtol strtold strtoll
strtoul strtoull system wcstombs wctomb memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn
strerror strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm asctime clock ctime difftime gmtime
localtime mktime strftime time timespec_get call_once cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait
cnd_wait mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock mtx_unlock thrd_create thrd_current thrd_detach
thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield tss_create tss_delete tss_get tss_set stdin stdout stderr main
""".split())
LIBCS = re.compile(r"pthread_|sem_|sig|dl|_")


def symbols(file, *options):
    """Name and kind, of a library's or an object's symbols."""
    said = subprocess.run([nm, *options, str(file)], check=True, text=True, capture_output=True).stdout
    for line in said.splitlines():
        if len(words := line.split()) >= 2 and len(words[-2]) == 1:
            yield words[-1].split("@")[0], words[-2]


def mine(name):
    return name not in ISO and not LIBCS.match(name)


libraries = [build / name for name in ("liblevada.a", "liblevada-mcapi.a", "liblevada.so", "liblevada-mcapi.so")]
bad = set()
for library in libraries:
    options = ["-D"] if library.suffix == ".so" else []
    all_of_it = set(symbols(library, *options))
    defined = {name for name, kind in all_of_it if kind not in "Uw"}
    bad |= {name for name, kind in all_of_it
            if kind in "Uw" and mine(name) and not name.startswith(("lvd_", "mcapi_")) and name not in defined}
if bad:
    sys.exit(f"the libraries use names that are the program's: {', '.join(sorted(bad))}")

# The natives of CAL call the system as the library does. Names of hosts are the C library's to look up.
RESOLVER = {"getaddrinfo", "freeaddrinfo", "gai_strerror"}
include = [f"-I{source / 'include'}"]
for native in sorted((source.parent / "crates/levada-cal/lib/natives").glob("*.c")):
    made = here / f"{native.stem}.o"
    subprocess.run([compiler, "-std=c17", "-O2", "-w", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", *include,
                    f"-I{source}", "-c", "-o", made, native], check=True)
    bad = {name for name, kind in symbols(made)
           if kind in "Uw" and mine(name) and not name.startswith("lvd_")} - RESOLVER
    if bad:
        sys.exit(f"{native} uses names that are the program's: {', '.join(sorted(bad))}")

# Every function that the C library has and ISO C has not.
(here / "empty.c").write_text("int main(void) { return 0; }\n")
subprocess.run([compiler, "-o", here / "empty", here / "empty.c"], check=True)
libc = next(word for word in subprocess.run(["ldd", here / "empty"], check=True, text=True, capture_output=True)
            .stdout.split() if word.startswith("/") and "libc." in word)
names = sorted({name for name, kind in symbols(libc, "-D", "--defined-only") if kind in "TWi" and mine(name)
                and re.fullmatch(r"[a-z][a-z0-9_]*", name)})
if len(names) < 500:
    sys.exit(f"{libc} has {len(names)} functions")
(here / "taken.c").write_text("_Noreturn void taken(const char *name);\n" +
                              "".join(f'void {name}(void) {{ taken("{name}"); }}\n' for name in names))

# The files that call the system, also compiled with the program.
port = [str(f) for f in sorted((source / "platform/linux").glob("*.c"))]
base = [compiler, "-std=c17", "-O2", "-w", "-pthread", *include]


def made(name, *how):
    """The program, linked so."""
    sources = [source / "tests/platform/names/uses.c", here / "taken.o"]
    subprocess.run([*base, "-o", here / name, *sources, *how], check=True)
    return here / name


subprocess.run([*base, "-fno-builtin", "-c", "-o", here / "taken.o", here / "taken.c"], check=True)
static = [build / "liblevada-mcapi.a", build / "liblevada.a"]
programs = [
    made("shared", f"-L{build}", "-llevada-mcapi", "-llevada", f"-Wl,-rpath,{build}"),
    made("static", *static),
    made("whole", "-static", *static),
    made("lto", "-flto", "-D_GNU_SOURCE", *port, *static),
]
for program in programs:
    said = subprocess.run([program, *arguments], text=True, capture_output=True, timeout=60)
    if said.returncode or said.stdout != "ok\n":
        sys.exit(f"{program}: status {said.returncode}\n{said.stdout}{said.stderr}")
print(f"{len(names)} names, {len(programs)} programs")
