# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every function that a public header declares as the library's can be linked with from outside.
  exported.py INCLUDE NM LIBRARY..."""
import pathlib
import re
import subprocess
import sys

include, nm, *libraries = sys.argv[1:]
no_code = re.compile(r"/\*.*?\*/|#define[^\n]*(?:\\\n[^\n]*)*|__attribute__\s*\(\(.*?\)\)", re.S)
text = "".join(no_code.sub("", header.read_text()) for header in sorted(pathlib.Path(include).rglob("*.h")))
declared = {m.group(1) for m in re.finditer(r"\b(?:LVD_API|MCAPI_DECL)\b[^;{(]*?\b(\w+)\s*\(", text)}
exported = {words[-1].split("@")[0] for library in libraries
            for line in subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True,
                                       capture_output=True).stdout.splitlines() if (words := line.split())}
missing = sorted(declared - exported)
if len(declared) < 100 or missing:
    sys.exit(f"{len(declared)} functions are declared; not to be linked with: {', '.join(missing) or 'none'}")
print(f"{len(declared)} functions")
