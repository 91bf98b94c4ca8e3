#!/bin/sh
# Make configure from configure.ac and Makefile.am.
set -e
cd "$(dirname "$0")"
for tool in autoconf:autoconf automake:automake libtoolize:libtool pkg-config:pkg-config; do
	command -v "${tool%%:*}" >/dev/null || {
		echo "autogen.sh: ${tool%%:*} is missing: apt-get install ${tool#*:}" >&2
		exit 1
	}
done
mkdir -p build-aux
exec autoreconf --install --warnings=all,no-obsolete
